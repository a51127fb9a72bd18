/**
 * Processors: they see what goes into a run and its model, and what comes out, before anybody else does. They may change it, drop
 * it, or stop the run ({@link ProcessorContext.abort}, the tripwire). Give them to an agent or to one run, as `inputProcessors`
 * and `outputProcessors`.
 *
 * @since 0.1.0
 */
export { type BlockOptions, blockWhen, type Verdict } from "./blockWhen.js"
export {
  type AbortOptions,
  type Hooks,
  isProcessor,
  make,
  type Options,
  type ProcessedAnswer,
  type ProcessedChunks,
  type ProcessedResult,
  type Processor,
  type ProcessorContext,
  type ProcessorFacts,
  type ProcessorState,
  TypeId
} from "./definition.js"
export { type PersonalData, type RedactOptions, redact } from "./redact.js"
export { type TokenLimitOptions, tokenLimiter } from "./tokenLimiter.js"
