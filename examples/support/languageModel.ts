/** The model of an example, for the Effect face: a provider package's model behind the port. */
import { LanguageModel } from "eddy"
import { pickModel } from "./model.js"

export const pickLanguageModel = async (
  script: LanguageModel.LanguageModel
): Promise<LanguageModel.LanguageModel> => {
  const model = await pickModel(script)
  return "answer" in model ? model : LanguageModel.fromAiSdk(model)
}
