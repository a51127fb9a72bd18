/**
 * What an example needs to show text and running tools: lines that spin on a terminal, and plain lines, one for each tool
 * that is done, in a file or a pipe.
 */
import { styleText } from "node:util"

const isTerminal = process.stdout.isTTY === true
const isColoured = isTerminal && !process.env.NO_COLOR

const paint = (colour: "green" | "red" | "cyan" | "gray", text: string): string =>
  isColoured ? styleText(colour, text) : text

const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

const describe = (value: unknown): string => {
  if (typeof value === "string") return value
  if (value instanceof Error) return value.message
  if (typeof value !== "object" || value === null) return String(value)
  return Object.values(value).join(", ")
}

interface Line {
  readonly label: string
  readonly since: number
  note: string
}

export class Screen {
  private readonly running = new Map<string, Line>()
  private timer: ReturnType<typeof setInterval> | undefined
  private drawn = 0
  private ticks = 0
  private isInLine = false

  text(text: string): void {
    process.stdout.write(text)
    this.isInLine = !text.endsWith("\n")
  }

  begin(call: { readonly toolCallId: string; readonly toolName: string; readonly args?: unknown }): void {
    if (this.isInLine) this.text("\n")
    const label = `${call.toolName} ${describe(call.args)}`
    this.running.set(call.toolCallId, { label, since: performance.now(), note: "" })
    if (isTerminal) this.timer ??= setInterval(() => this.redraw(), 80).unref()
    this.redraw()
  }

  note(id: string, note: unknown): void {
    const line = this.running.get(id)
    if (line !== undefined) line.note = describe(note)
  }

  end(id: string, isGood: boolean, outcome: unknown): void {
    const line = this.running.get(id)
    if (line === undefined) return
    this.running.delete(id)
    this.erase()
    const mark = isGood ? paint("green", "✓") : paint("red", "✗")
    const seconds = ((performance.now() - line.since) / 1000).toFixed(1)
    this.text(`  ${mark} ${line.label}: ${describe(outcome)} ${paint("gray", `(${seconds} s)`)}\n`)
    this.redraw()
    if (this.running.size === 0) {
      clearInterval(this.timer)
      this.timer = undefined
    }
  }

  private erase(): void {
    if (this.drawn > 0) process.stdout.write(`\u001b[${this.drawn}A\u001b[J`)
    this.drawn = 0
  }

  private redraw(): void {
    if (!isTerminal) return
    this.erase()
    const frame = frames[this.ticks++ % frames.length] ?? ""
    for (const { label, note } of this.running.values()) {
      // A line that wraps would be two, and erasing counts lines.
      const text = `${label} ${note}`.slice(0, (process.stdout.columns || 80) - 5)
      process.stdout.write(`  ${paint("cyan", frame)} ${text}\n`)
      this.drawn++
    }
  }
}
