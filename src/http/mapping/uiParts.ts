/** Frames that are made of one chunk alone. */
import type { Chunk, Of } from "../../protocol/Chunk.js"
import type { FinishReason } from "../../protocol/FinishReason.js"
import { type ProviderMetadata, toBase64 } from "../../protocol/safeJson.js"
import type { UiFinishReason, UiFrame } from "./uiFrames.js"

/** What a provider wants back with a part comes back with the conversation. */
export const metadataOf = ({
  providerMetadata
}: {
  readonly providerMetadata?: ProviderMetadata
}): { readonly providerMetadata?: ProviderMetadata } =>
  providerMetadata === undefined ? {} : { providerMetadata }

const isUrl = (data: string): boolean => /^(data|https?):/i.test(data)

/** Where a client finds a file: in the URL itself, unless the provider gave one. */
export const fileUrl = ({ data, mimeType }: Of<"file">["payload"]): string =>
  typeof data === "string"
    ? isUrl(data)
      ? data
      : `data:${mimeType};base64,${data}`
    : `data:${mimeType};base64,${toBase64(data)}`

export const fileFrame = (payload: Of<"file">["payload"]): UiFrame => ({
  type: "file",
  url: fileUrl(payload),
  mediaType: payload.mimeType,
  ...metadataOf(payload)
})

/** A document must have a title and a media type, a link must lead somewhere. */
export const sourceFrame = (payload: Of<"source">["payload"], sourceId: string): UiFrame => {
  const { filename, mimeType, sourceType, title, url } = payload
  return sourceType === "url" && url !== undefined
    ? {
        type: "source-url",
        sourceId,
        url,
        ...(title === "" ? {} : { title }),
        ...metadataOf(payload)
      }
    : {
        type: "source-document",
        sourceId,
        mediaType: mimeType ?? "application/octet-stream",
        title: title || filename || url || "Document",
        ...(filename === undefined ? {} : { filename }),
        ...metadataOf(payload)
      }
}

/** The AI SDK has no word for what was stopped, blocked or left waiting. */
export const finishReasonOf = (reason: FinishReason): UiFinishReason =>
  reason === "aborted" || reason === "tripwire" || reason === "suspended" ? "other" : reason

export const isData = (chunk: Chunk): chunk is Of<`data-${string}`> => chunk.type.startsWith("data-")

/** What a tool or a processor has written for the client, as it is. */
export const dataFrame = ({ data, id, transient, type }: Of<`data-${string}`>): UiFrame => ({
  type,
  data: data ?? null,
  ...(id === undefined ? {} : { id }),
  ...(transient === undefined ? {} : { transient })
})
