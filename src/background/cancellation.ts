/** Why an execution is stopped whose task is cancelled: nobody will go on with it. */
const message = "The task was cancelled."

/** The reason of its signal. */
export const cancellation = (): DOMException => new DOMException(message, "AbortError")

/** Whether a signal fired because the task was cancelled, and not because it took too long or its process ends. */
export const isCancellation = (reason: unknown): boolean =>
  reason instanceof DOMException && reason.message === message
