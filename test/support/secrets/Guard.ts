import { devKeys } from "./DevKeys.js"

/** Encodings of a key to search for: hex, decimal, base64. */
const guises = devKeys.flatMap((key) => {
  const bytes = Buffer.from(key, "hex")
  return [key, BigInt(`0x${key}`).toString(), bytes.toString("base64").replace(/=+$/, "")]
})

/** Whether a text holds one of the tests' private keys. */
export const tells = (text: string): boolean => {
  const lower = text.toLowerCase()
  return guises.some((guise) => lower.includes(guise) || text.includes(guise))
}

export interface Guard {
  /** Kinds of places where a key leaked, never the key. */
  readonly found: () => ReadonlyArray<string>
  readonly remove: () => void
}

type Say = (...parts: ReadonlyArray<unknown>) => void
const methods = ["debug", "info", "log", "warn", "error"] as const

/** Output channels of a process. */
export interface Voice {
  readonly console: Record<(typeof methods)[number], Say>
  fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>
}

/** Listens to the console and to the answers of HTTP requests. */
export const install = (voice: Voice): Guard => {
  const found: Array<string> = []
  const note = (where: string, text: string) => {
    if (tells(text)) found.push(where)
  }
  const originals = methods.map((method) => [method, voice.console[method]] as const)
  for (const [method, original] of originals)
    voice.console[method] = (...parts) => {
      for (const part of parts)
        note(`console.${method}`, typeof part === "string" ? part : (JSON.stringify(part, replacer) ?? ""))
      original(...parts)
    }
  const plainFetch = voice.fetch
  voice.fetch = async (input, init) => {
    const answer = await plainFetch(input, init)
    const text = answer.text.bind(answer)
    return Object.defineProperty(answer, "text", {
      value: async () => {
        const body = await text()
        note(`an answer of ${new URL(answer.url || "http://unknown").pathname}`, body)
        return body
      }
    })
  }
  return {
    found: () => found,
    remove: () => {
      for (const [method, original] of originals) voice.console[method] = original
      voice.fetch = plainFetch
    }
  }
}

const replacer = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value)
