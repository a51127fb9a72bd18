/** Which run of a thread has the turn, among those of one store in this process: first come, first served. Plain code. */

/** What a run does whose thread is busy with another one. @since 0.1.0 @category models */
export type WhenBusy = "queue" | "reject" | "parallel"

/** The thread that a run wants to speak in. @since 0.1.0 @category models */
export interface TurnRequest {
  readonly threadId: string
  readonly resourceId: string
  readonly runId: string
  /**
   * `queue`: it waits until all runs that came before have ended. `reject`: it fails when there is one. `parallel`: it does not
   * wait, and those that come later wait for it.
   */
  readonly whenBusy: WhenBusy
  /** The turns of the runs whose calls it works for: while one of them is held, the run does not wait in that thread. */
  readonly within: ReadonlyArray<ThreadTurn>
}

/** The turn of a run in its thread. @since 0.1.0 @category models */
export interface ThreadTurn {
  readonly threadId: string
  /** Whether the run has the turn still. */
  readonly isHeld: () => boolean
  /** Gives the turn to the next. Does nothing the second time. */
  readonly end: () => void
}

/** A place in the line of a thread. */
class Place implements ThreadTurn {
  private state: "waiting" | "held" | "over" = "waiting"
  private listener: (() => void) | undefined

  constructor(
    private readonly line: Line,
    readonly request: TurnRequest
  ) {}

  get threadId(): string {
    return this.request.threadId
  }

  readonly isHeld = (): boolean => this.state === "held"

  readonly end = (): void => {
    if (this.state === "over") return
    this.state = "over"
    this.line.leave(this)
  }

  /** The run has the turn. */
  admit(): void {
    this.state = "held"
    this.listener?.()
  }

  /** Called once, when the run gets the turn. */
  onAdmitted(listener: () => void): void {
    if (this.isHeld()) listener()
    else this.listener = listener
  }

  /** Whether it belongs to a run that this one may speak beside: the same run, or one that it works for. */
  mayJoin(other: Place): boolean {
    return other.request.runId === this.request.runId || this.request.within.includes(other)
  }
}

/** The runs of one thread, in the order in which they came. */
class Line {
  private readonly held = new Set<Place>()
  private waiting: ReadonlyArray<Place> = []

  constructor(private readonly onEmpty: () => void) {}

  /** The id of the run that this one finds in its way; `undefined`: it has a place. */
  enter(place: Place): string | undefined {
    const { whenBusy } = place.request
    const joins = whenBusy === "parallel" || [...this.held].some(other => place.mayJoin(other))
    const [before] = joins ? [] : [...this.held, ...this.waiting]
    if (before === undefined) this.admit(place)
    else if (whenBusy === "queue") this.waiting = [...this.waiting, place]
    else return before.request.runId
    return undefined
  }

  leave(place: Place): void {
    this.held.delete(place)
    this.waiting = this.waiting.filter(other => other !== place)
    // Who waits for a run that has ended goes on; with it whatever is of the same run.
    for (const next of this.waiting) {
      if (this.held.size > 0 && ![...this.held].some(other => next.mayJoin(other))) break
      this.waiting = this.waiting.filter(other => other !== next)
      this.admit(next)
    }
    if (this.held.size === 0) this.onEmpty()
  }

  private admit(place: Place): void {
    this.held.add(place)
    place.admit()
  }
}

/** What came of a request: a place in the line, or the run that was in the way. */
export type Entered =
  | { readonly _tag: "Entered"; readonly turn: ThreadTurn & Pick<Place, "onAdmitted"> }
  | { readonly _tag: "Busy"; readonly runId: string }

/** The lines of all threads of a store. */
export class ThreadTurns {
  private readonly lines = new Map<string, Line>()

  enter(request: TurnRequest): Entered {
    const key = JSON.stringify([request.threadId, request.resourceId])
    const line = this.lines.get(key) ?? new Line(() => this.lines.delete(key))
    this.lines.set(key, line)
    const place = new Place(line, request)
    const runId = line.enter(place)
    return runId === undefined ? { _tag: "Entered", turn: place } : { _tag: "Busy", runId }
  }
}
