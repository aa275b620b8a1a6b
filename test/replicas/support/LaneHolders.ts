import pg from "pg"

/** The owner of each lane by the journal's claims, over time. */
export interface LaneHolders {
  /** The process that has the signer's lane; null: none yet. */
  readonly of: (signer: string) => string | null
  /**
   * Milliseconds from `since` until other processes had claimed every lane that one of these processes had then; null:
   * they had none, or still have one.
   */
  readonly takeOver: (processes: ReadonlyArray<string>, since: number) => number | null
  /** The journal's count of open work: transactions, assigned nonces, requests. */
  readonly open: () => Promise<ReadonlyArray<string>>
  /** Rows of a custom query on the journal. */
  readonly rows: (
    text: string,
    values: ReadonlyArray<unknown>
  ) => Promise<ReadonlyArray<Readonly<Record<string, unknown>>>>
  readonly stop: () => Promise<void>
}

interface Claim {
  readonly signer: string
  readonly process: string
  readonly at: number
}

const lookMillis = 100

/** Reads the database directly, unaffected by the replicas' faults; while it is away it reads no rows. */
export const start = async (url: string): Promise<LaneHolders> => {
  const pool = new pg.Pool({
    connectionString: url,
    max: 2,
    connectionTimeoutMillis: 2_000,
    query_timeout: 5_000
  })
  pool.on("error", () => undefined)
  const claims: Array<Claim> = []
  const latest = (signer: string, at = Number.POSITIVE_INFINITY) =>
    claims.findLast((claim) => claim.signer === signer && claim.at <= at)
  const look = async () => {
    const { rows } = await pool.query<{ signer: string; process: string }>(
      "select signer, process from lanes"
    )
    const at = performance.now()
    for (const { process, signer } of rows) {
      const name = signer.toLowerCase()
      if (latest(name)?.process !== process) claims.push({ signer: name, process, at })
    }
  }
  let isStopped = false
  const watch = async () => {
    while (!isStopped) {
      await look().catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, lookMillis))
    }
  }
  const watching = watch()
  return {
    of: (signer) => latest(signer.toLowerCase())?.process ?? null,
    takeOver: (processes, since) => {
      const lost = [...new Set(claims.map(({ signer }) => signer))].filter((signer) =>
        processes.includes(latest(signer, since)?.process ?? "")
      )
      const taken = lost.map(
        (signer) =>
          claims.find(
            (claim) => claim.signer === signer && claim.at > since && !processes.includes(claim.process)
          )?.at ?? null
      )
      const known = taken.flatMap((at) => (at === null ? [] : [at - since]))
      return known.length === 0 || known.length < taken.length ? null : Math.max(...known)
    },
    open: async () => {
      const transactions = await pool.query<{ signer: string; nonce: string; state: string }>(
        "select signer, nonce, state from transactions where state in ('free', 'allocated', 'signed')"
      )
      const requests = await pool.query<{ request_id: string }>(
        "select request_id from requests where state = 'open'"
      )
      return [
        ...transactions.rows.map(
          ({ nonce, signer, state }) => `nonce ${BigInt(nonce)} of ${signer} is ${state}`
        ),
        ...requests.rows.map(({ request_id }) => `request ${request_id} is open`)
      ]
    },
    rows: async (text, values) => (await pool.query(text, [...values])).rows,
    stop: async () => {
      isStopped = true
      await watching
      await pool.end()
    }
  }
}
