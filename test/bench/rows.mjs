// The rows in the order they run. Each has a process of its own, with these flags and no more than these seconds.
// `--no-flush-bytecode`: a collection is forced before every sample, and V8 would throw away code it finds unused.
const timing = ["--expose-gc", "--no-flush-bytecode"]

/** The peer's hundred readers are a hundred listeners, of which Node warns each time. */
const quiet = "--disable-warning=MaxListenersExceededWarning"

export const rows = {
  text: { title: "Text stream: one run, every chunk of the promise face read", flags: timing, seconds: 300 },
  linear: { title: "Growth: eddy to a million deltas", flags: timing, seconds: 180 },
  iterator: { title: "for await over eddy's fullStream against its reader", flags: timing, seconds: 180 },
  effect: {
    title: "Effect face: Stream.runForEach against mastra's fullStream",
    flags: timing,
    seconds: 150
  },
  processors: {
    title: "Processors: three that let every chunk of an answer pass, against none",
    flags: timing,
    seconds: 150
  },
  tools: {
    title: "Tool loop: steps with an instant tool, then one step of text",
    flags: timing,
    seconds: 240
  },
  first: { title: "Time to the first text-delta, warm", flags: ["--no-flush-bytecode"], seconds: 120 },
  import: {
    title: "Cold: import in a fresh process, then its first stream of 1 000 deltas",
    flags: [],
    seconds: 240
  },
  promises: { title: "Counters: promises and streams, the same on any machine", flags: [], seconds: 60 },
  memory: { title: "Memory: kept per text delta while the output object lives", flags: [], seconds: 150 },
  concurrent: { title: "Many: 1 000 runs at once, a delta every 5 ms", flags: timing, seconds: 480 },
  replay: { title: "Long: 100 MB of text with replay: false, the heap's peak", flags: [], seconds: 300 },
  nested: { title: "Sub-agents: deltas told some levels down", flags: timing, seconds: 180 },
  telemetry: {
    title: "Traces: runs that nobody listens to, and runs that OpenTelemetry does",
    flags: timing,
    seconds: 240
  },
  thread: { title: "Memory of conversations: the next turn of a thread", flags: timing, seconds: 180 },
  structured: {
    title: "Structured output: every partial value of an objectStream read",
    flags: timing,
    seconds: 900
  },
  tasks: { title: "Background tasks in memory: 1 000 calls of a tool at once", flags: timing, seconds: 600 },
  tasksDisk: { title: "Background tasks in files of libSQL", flags: [], seconds: 900 },
  tasksQueued: { title: "Background tasks: eddy's queue", flags: timing, seconds: 240 },
  taskReaders: {
    title: "Background tasks: many readers of their events",
    flags: [...timing, quiet],
    seconds: 300
  },
  taskStart: { title: "Background tasks: from dispatch to running, warm", flags: timing, seconds: 180 }
}
