/**
 * What an until-idle stream waits for, and what it does next. Pure: it is told what happens, and asked what to do.
 *
 * A task settles once, may do so before anybody heard that it runs, and is answered once: by the turn that was running, when
 * its model saw the outcome, or by one that is begun for it.
 */
import type { Task } from "../protocol/Task.js"

/** What is to be done next. */
export type IdleDecision =
  /** A turn is running. */
  | { readonly _tag: "Busy" }
  /** Begin a turn that answers to these. */
  | { readonly _tag: "Continue"; readonly tasks: ReadonlyArray<Task> }
  /** Something is running: wait for it. */
  | { readonly _tag: "Wait" }
  /** Nothing runs and everything is answered; or nobody wants any more. */
  | { readonly _tag: "Close" }

export class IdleState {
  private isTurnActive = true
  private isOver = false
  private readonly unanswered = new Map<string, Task>()
  /** Tasks that have settled, whether they are answered or not: a task settles once, however often that is said. */
  private readonly known = new Set<string>()

  constructor(
    /** Whether a turn is begun for what is there, or when nothing runs any more. */
    private readonly batch: "ready" | "all",
    /** Whether a model has answered to a task already. */
    private readonly isAnswered: (taskId: string) => boolean
  ) {}

  /** A task of the scope has settled. */
  settled(task: Task): void {
    if (this.known.has(task.id)) return
    this.known.add(task.id)
    this.unanswered.set(task.id, task)
  }

  /** Whether a turn is running. */
  get isBusy(): boolean {
    return this.isTurnActive
  }

  /** A turn is over. */
  turnEnded(): void {
    this.isTurnActive = false
  }

  /** A turn begins, that answers to these. */
  turnBegan(tasks: ReadonlyArray<Task>): void {
    this.isTurnActive = true
    for (const { id } of tasks) this.unanswered.delete(id)
  }

  /** Nobody wants another turn: it was stopped or taken over, has waited too long, or its manager has ended. */
  stop(): void {
    this.isOver = true
  }

  /** What is to be done while so many tasks of the scope are pending or running. */
  decide(active: number): IdleDecision {
    if (this.isTurnActive) return { _tag: "Busy" }
    if (this.isOver) return { _tag: "Close" }
    for (const id of this.unanswered.keys()) if (this.isAnswered(id)) this.unanswered.delete(id)
    const tasks = [...this.unanswered.values()]
    if (tasks.length > 0 && (this.batch === "ready" || active === 0)) return { _tag: "Continue", tasks }
    return active > 0 ? { _tag: "Wait" } : { _tag: "Close" }
  }
}
