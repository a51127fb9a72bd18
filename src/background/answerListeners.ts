/** Who hears that a model has answered outcomes of tasks: the until-idle streams of the thread. */

/** The thread that a stream is about. */
export interface IdleThread {
  readonly id: string
  readonly resourceId: string
}

/** Called with the ids of tasks. */
export type AnswerListener = (taskIds: ReadonlyArray<string>) => void

export class AnswerListeners {
  private readonly listeners = new Map<string, ReadonlyArray<AnswerListener>>()

  readonly of = ({ id, resourceId }: IdleThread): ReadonlyArray<AnswerListener> =>
    this.listeners.get(JSON.stringify([id, resourceId])) ?? []

  /** Calls the listener from now on. Returns how to end that. */
  add(thread: IdleThread, listener: AnswerListener): () => void {
    const key = JSON.stringify([thread.id, thread.resourceId])
    this.listeners.set(key, [...this.of(thread), listener])
    return () => {
      const left = this.of(thread).filter(other => other !== listener)
      if (left.length === 0) this.listeners.delete(key)
      else this.listeners.set(key, left)
    }
  }
}
