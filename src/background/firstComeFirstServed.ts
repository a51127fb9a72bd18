/**
 * Jobs of many owners in the order in which they came, where any owner may be blocked for a while: its jobs wait, and hold up
 * nobody else's. Plain data; adding, taking and unblocking cost the logarithm of how many owners wait.
 */

/** A job, and when it came. */
interface Waiting<A> {
  readonly place: number
  readonly job: A
}

/** The job that is next. */
export interface First<A> extends Waiting<A> {
  readonly owner: string
}

interface Line<A> {
  readonly owner: string
  jobs: Array<Waiting<A>>
  /** Jobs in front of this index were taken. */
  first: number
  isBlocked: boolean
}

const placeOf = <A>(line: Line<A>): number => line.jobs[line.first]?.place ?? Number.POSITIVE_INFINITY

export class FirstComeFirstServed<A> {
  private readonly lines = new Map<string, Line<A>>()
  /** A heap of the lines that are not blocked and not empty, by the place of their first job. */
  private readonly heap: Array<Line<A>> = []
  private places = 0

  /** Jobs that wait. */
  size = 0

  add(owner: string, job: A): void {
    const line = this.lines.get(owner) ?? { owner, jobs: [], first: 0, isBlocked: false }
    this.lines.set(owner, line)
    const wasEmpty = line.jobs.length === line.first
    line.jobs.push({ place: this.places++, job })
    this.size++
    if (wasEmpty && !line.isBlocked) this.push(line)
  }

  /** The job that has waited longest of those whose owners are not blocked. */
  first(): First<A> | undefined {
    const line = this.heap[0]
    const waiting = line?.jobs[line.first]
    return line === undefined || waiting === undefined ? undefined : { owner: line.owner, ...waiting }
  }

  /** Takes the {@link first} job out. */
  take(): void {
    const line = this.pop()
    if (line === undefined) return
    line.first++
    this.size--
    if (line.first === line.jobs.length) {
      this.lines.delete(line.owner)
      return
    }
    // What was taken is let go of now and then, so that a line that is never empty does not grow for ever.
    if (line.first >= 64 && line.first * 2 >= line.jobs.length) {
      line.jobs = line.jobs.slice(line.first)
      line.first = 0
    }
    this.push(line)
  }

  /** Puts a job that was taken back where it was. */
  putBack({ job, owner, place }: First<A>): void {
    const line = this.lines.get(owner)
    if (line === undefined) {
      const alone = { owner, jobs: [{ place, job }], first: 0, isBlocked: false }
      this.lines.set(owner, alone)
      this.push(alone)
    } else {
      let index = line.first
      while ((line.jobs[index]?.place ?? Number.POSITIVE_INFINITY) < place) index++
      line.jobs.splice(index, 0, { place, job })
      const known = this.heap.indexOf(line)
      if (known !== -1) this.rise(line, known)
    }
    this.size++
  }

  /** The owner of the {@link first} job waits, until it is unblocked. */
  block(): void {
    const line = this.pop()
    if (line !== undefined) line.isBlocked = true
  }

  unblock(owner: string): void {
    const line = this.lines.get(owner)
    if (line === undefined || !line.isBlocked) return
    line.isBlocked = false
    this.push(line)
  }

  private push(line: Line<A>): void {
    this.heap.push(line)
    this.rise(line, this.heap.length - 1)
  }

  private rise(line: Line<A>, from: number): void {
    const { heap } = this
    let index = from
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = heap[above]
      if (parent === undefined || placeOf(parent) <= placeOf(line)) break
      heap[index] = parent
      index = above
    }
    heap[index] = line
  }

  private pop(): Line<A> | undefined {
    const { heap } = this
    const [top] = heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return top
    let index = 0
    for (;;) {
      const left = 2 * index + 1
      const smaller = this.smaller(left, left + 1)
      const child = heap[smaller]
      if (child === undefined || placeOf(child) >= placeOf(last)) break
      heap[index] = child
      index = smaller
    }
    heap[index] = last
    return top
  }

  private smaller(left: number, right: number): number {
    const [one, other] = [this.heap[left], this.heap[right]]
    return one !== undefined && other !== undefined && placeOf(other) < placeOf(one) ? right : left
  }
}
