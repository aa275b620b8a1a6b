import { DatabaseSync, type SQLInputValue } from "node:sqlite"

/** Reads the database of a running service, or fills a stopped one's. */

/** Wait for the service's writes, in ms. */
const busyMillis = 5_000

const read = <Row>(
  file: string,
  query: string,
  ...values: ReadonlyArray<SQLInputValue>
): ReadonlyArray<Row> => {
  const database = new DatabaseSync(file, { readOnly: true, timeout: busyMillis })
  try {
    return database.prepare(query).all(...values) as ReadonlyArray<unknown> as ReadonlyArray<Row>
  } finally {
    database.close()
  }
}

export const lastRequest = (file: string): number =>
  read<{ readonly last: number | null }>(file, "select max(request_no) as last from requests")[0]?.last ?? 0

/** Size of the used pages, in the write-ahead log or the file. */
export const bytes = (file: string): number =>
  read<{ readonly bytes: number }>(
    file,
    `select (p.page_count - f.freelist_count) * s.page_size as bytes
     from pragma_page_count as p, pragma_freelist_count as f, pragma_page_size as s`
  )[0]?.bytes ?? 0

/** Acceptance times of the requests after this one, Unix milliseconds. */
export const acceptedAfter = (file: string, request: number): ReadonlyArray<number> =>
  read<{ readonly at: number }>(
    file,
    "select accepted_at as at from requests where request_no > ?",
    request
  ).map(({ at }) => at)

/** SQL expressions over the number `n`, different per row, that replace columns of a copied row. */
type Overrides = Readonly<Record<string, string>>

const requestColumns: Overrides = { request_id: "'fill-' || n", idempotency_key: "null" }
const opColumns: Overrides = {
  request_id: "'fill-' || n",
  wallet: "'0x' || printf('%040x', n)",
  user_op_hash: "'0x' || printf('%064x', n)",
  tx_hash: "'0x' || printf('%064x', n)"
}

/** Other EOAs, because the chain fixes the nonces of those in use. */
const transactionColumns: Overrides = {
  signer: "'0x' || printf('%040x', n % 64)",
  nonce: "printf('%020d', n)",
  tx_hash: "'0x' || printf('%064x', n)"
}

/**
 * Copies the newest settled request, its op and its transaction until there are `requests`. Columns without overrides keep
 * the copied row's values; row numbers are new.
 */
export const fill = (file: string, requests: number): void => {
  const database = new DatabaseSync(file, { timeout: busyMillis })
  try {
    database.exec("pragma synchronous = off")
    const { had, from } = database
      .prepare(
        `select count(*) as had, max(request_id) filter (where request_no = (
           select max(request_no) from requests where state = 'final'
             and exists (select 1 from ops where ops.request_id = requests.request_id)
         )) as "from" from requests`
      )
      .get() as unknown as { readonly had: number; readonly from: string }
    const numbers = `with recursive numbers(n) as (select ${had} union all select n + 1 from numbers where n < ${requests - 1})`
    const copy = (table: string, own: string, overrides: Overrides, template: string) => {
      const columns = database
        .prepare(`select name from pragma_table_info('${table}')`)
        .all()
        .map(({ name }) => String(name))
        .filter((name) => name !== own)
      const values = columns.map((name) => overrides[name] ?? `template.${name}`)
      database
        .prepare(
          `insert into ${table} (${columns.join(", ")}) ${numbers}
           select ${values.join(", ")} from numbers, (${template}) as template`
        )
        .run(from)
    }
    database.exec("begin")
    copy("requests", "request_no", requestColumns, "select * from requests where request_id = ?")
    copy("ops", "op_id", opColumns, "select * from ops where request_id = ? limit 1")
    const its = "select tx_hash from ops where request_id = ?"
    copy(
      "transactions",
      "",
      transactionColumns,
      `select * from transactions where tx_hash = (${its} limit 1)`
    )
    database.exec("commit")
    database.exec("pragma wal_checkpoint(truncate)")
  } finally {
    database.close()
  }
}
