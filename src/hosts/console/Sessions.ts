import { createHash, randomBytes } from "node:crypto"

/** A signed-in browser. Kept in memory: a restart signs all operators out. */
export interface Session {
  /** Sent with every form; another site's page does not know it. */
  readonly formToken: string
  /** Name of the operator who signed in. */
  readonly operator: string
  readonly until: number
}

export interface Sessions {
  readonly begin: (operator: string, now: number) => string
  readonly find: (secret: string, now: number) => Session | null
  readonly end: (secret: string) => void
  /** Whether another sign-in attempt is allowed; counts it. */
  readonly mayTry: (now: number) => boolean
}

export const cookieName = "castellan-operator"
/** Seconds. */
export const life = 8 * 3_600
/** Concurrent sessions; a new one beyond this ends the oldest. */
const most = 32
/** Attempts with right or wrong tokens, from all browsers. */
const triesPerMinute = 20

const nameOf = (secret: string): string => createHash("sha256").update(secret).digest("hex")

export const make = (): Sessions => {
  const sessions = new Map<string, Session>()
  let tries: ReadonlyArray<number> = []
  return {
    begin: (operator, now) => {
      const secret = randomBytes(32).toString("base64url")
      const [oldest] = sessions.keys()
      if (sessions.size >= most && oldest !== undefined) sessions.delete(oldest)
      sessions.set(nameOf(secret), {
        formToken: randomBytes(24).toString("base64url"),
        operator,
        until: now + life * 1_000
      })
      return secret
    },
    find: (secret, now) => {
      const name = nameOf(secret)
      const session = sessions.get(name) ?? null
      if (session === null || session.until > now) return session
      sessions.delete(name)
      return null
    },
    end: (secret) => {
      sessions.delete(nameOf(secret))
    },
    mayTry: (now) => {
      tries = [...tries.filter((at) => at > now - 60_000), now].slice(-triesPerMinute - 1)
      return tries.length <= triesPerMinute
    }
  }
}
