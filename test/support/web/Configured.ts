import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Http from "castellan/http"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Wiring from "../../../src/hosts/Wiring.js"

/** A configuration in its own folder, and the key of its only account. */
export interface Configured {
  readonly config: Http.Config.Config
  readonly key: string
  readonly remove: () => void
}

export const make = (file: Partial<Http.Config.File> = {}): Configured => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-web-"))
  const pepper = randomBytes(24).toString("hex")
  const { hash, key } = Effect.runSync(Wiring.issueKey(Redacted.make(pepper)))
  const config = Result.getOrThrow(
    Http.Config.from(
      {
        profile: "development",
        listen: { host: "127.0.0.1", port: 0 },
        database: { path: "castellan.sqlite" },
        keyPepper: pepper,
        accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [{ hash }] }],
        networks: [],
        ...file
      },
      { folder }
    )
  )
  return { config, key: Redacted.value(key), remove: () => rmSync(folder, { recursive: true }) }
}
