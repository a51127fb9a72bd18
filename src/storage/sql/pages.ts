/** A page of rows, and how many there are on all pages, by one statement: both are of the same moment. */
import { type Row, type Statement, statement, type Value } from "./executor.js"
import { number } from "./rows.js"

/** What rows must be, with its arguments. */
export interface Condition {
  readonly sql: string
  readonly args: ReadonlyArray<Value>
}

/** Joins what is there. Every row is meant when nothing is. */
export const all = (conditions: ReadonlyArray<Condition | undefined>): Condition => {
  const given = conditions.filter(condition => condition !== undefined)
  return {
    sql: given.length === 0 ? "1 = 1" : given.map(({ sql }) => sql).join(" AND "),
    args: given.flatMap(({ args }) => args)
  }
}

/** The column is this, when it is given. */
export const is = (column: string, value: Value | undefined): Condition | undefined =>
  value === undefined ? undefined : { sql: `${column} = ?`, args: [value] }

/** The columns are read and ordered by the names that they are given as. The first of them is never null. */
export const page = (asked: {
  readonly table: string
  readonly columns: string
  readonly where: Condition
  readonly order: string
  readonly offset: number
  readonly limit: number
}): Statement => {
  const { columns, limit, offset, order, table, where } = asked
  return statement(
    `SELECT * FROM (SELECT count(*) AS total FROM ${table} WHERE ${where.sql}) AS counted
    LEFT JOIN (
      SELECT * FROM (SELECT ${columns} FROM ${table} WHERE ${where.sql}) AS found
      ORDER BY ${order} LIMIT ? OFFSET ?
    ) AS page ON 1 = 1
    ORDER BY ${order}`,
    [...where.args, ...where.args, limit, offset]
  )
}

/** What was found: a page without rows is one row that has a total only. `key` is a column that is never null. */
export const readPage = <A>(rows: ReadonlyArray<Row>, key: string, readRow: (row: Row) => A) => ({
  rows: rows.filter(row => row[key] !== null).map(readRow),
  total: rows[0] === undefined ? 0 : number(rows[0], "total")
})
