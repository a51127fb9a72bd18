/** Time that passes in a store: what dead processes have claimed becomes free, without waiting for it. */
import { createClient } from "@libsql/client"
import { Effect } from "effect"
import { psql } from "../support/databases.js"

export interface Storage {
  readonly store: "libsql" | "postgres"
  readonly url: string
}

const sql = "UPDATE eddy_run_leases SET lives_until = 0"

/** Ends every lease on suspended runs and runs of workflows. */
export const endLeases = async ({ store, url }: Storage): Promise<void> => {
  if (store === "postgres") {
    await Effect.runPromise(psql(url, sql))
    return
  }
  const client = createClient({ url })
  await client.execute("PRAGMA busy_timeout = 5000")
  await client.execute(sql)
  client.close()
}
