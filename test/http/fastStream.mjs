/** What one fast stream costs the server; its client is another process: `npx tsx test/http/fastStream.mjs [burst|paced] [rounds]`. */

import { spawn } from "node:child_process"
import * as Effect from "effect/Effect"
import { serve } from "../../src/http.ts"
import { Agent, Eddy } from "../../src/promise.ts"

const deltas = 10000
const pace = process.argv[2] ?? "burst"
const model = {
  provider: "load",
  modelId: "load",
  answer: () =>
    Effect.succeed({
      normalize: p => p,
      source: (async function* () {
        yield { type: "text-start", id: "t" }
        for (let i = 0; i < deltas; i++) {
          yield { type: "text-delta", id: "t", delta: `word ${i} ` }
          if (pace === "paced") await new Promise(r => setImmediate(r))
        }
        yield { type: "text-end", id: "t" }
        yield { type: "finish", reason: "stop", usage: {} }
      })()
    })
}
const eddy = new Eddy({ agents: { helper: new Agent({ id: "helper", model }) } })
const serving = await serve(eddy)
const url = `${serving.url}/api/agents/helper/stream`
const client = `
const http = require("node:http")
process.stdin.on("data", () => { const r = http.request(process.argv[1], {method:"POST",headers:{"content-type":"application/json"}}, res => { let n=0,c=0; res.on("data",d=>{n+=d.length;c++}); res.on("end",()=>console.log(n,c)) }); r.end('{"messages":"Hello"}') })
`
const child = spawn(process.execPath, ["-e", client, url], { stdio: ["pipe", "pipe", "inherit"] })
const once = () =>
  new Promise(r => {
    child.stdout.once("data", d => r(String(d).trim()))
    child.stdin.write("go\n")
  })
for (let i = 0; i < Number(process.argv[3] ?? 6); i++) {
  const c = process.cpuUsage()
  const t = performance.now()
  const got = await once()
  const u = process.cpuUsage(c)
  console.log(
    pace,
    "server CPU us/delta",
    ((u.user + u.system) / deltas).toFixed(1),
    "wall ms",
    (performance.now() - t).toFixed(0),
    "bytes, reads:",
    got
  )
}
child.kill()
await serving.close()
await eddy.shutdown()
