import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import type { Address } from "../../../src/domain/primitives/Address.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import * as Power from "../../support/stack/Power.js"
import { keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { configOf } from "../../support/suite/Keys.js"

const phone = Authenticator.make()
const passkeyPubKey = [phone.spki.toString("base64")]

let stack: Stack
let journey: Journey.Journey
let folder: string
let standing: Address
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "custody-restart-"))
  stack = await startStack()
  journey = Journey.make(stack, "v0.7")
  standing = await journey.created({ salt: "stands", walletCustody: 5, passkeyPubKey })
})
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

const spots: ReadonlyArray<readonly [string, Power.Spot]> = [
  ["it is accepted", { step: "accept", moment: "after" }],
  ["its ops have their names", { step: "identify", moment: "after" }],
  ["its transaction is stored and not sent", { step: "recordSigned", moment: "after" }],
  ["it is settled and about to be answered", { step: "finish", moment: "before" }]
]

describe("a sponsored creation of mixed custodies goes on when the power fails once", () => {
  it.each(spots)("%s: every wallet once, and nothing stays set aside", async (name, spot) => {
    const accounts: CreateWallets.Request["accounts"] = [
      { salt: name, walletCustody: 4, signers: [Journey.second], passkeyPubKey, threshold: "2" },
      { wallet: standing, walletCustody: 0 },
      { salt: name, walletCustody: 1, legacyWallet: true }
    ]
    const caller = stack.caller()
    const settings = { ...journey.settings, ...journey.sponsored }
    const before = await stack.provider.getTransactionCount(stack.signer.address)
    const database = join(folder, `${spot.step}.sqlite`)
    const power = Power.make(spot)
    const first = stack.begin({ database, ...power.life })
    first.runFork(CreateWallets.run(caller, { accounts, settings }))
    await power.failed
    await first.dispose()

    const second = stack.begin({ database })
    try {
      await second.runPromise(Sweep.start)
      const outcome = Effect.flatMap(RequestJournal, (requestJournal) =>
        Effect.orDie(requestJournal.request(caller.requestId))
      )
      const answered = async () => (await second.runPromise(outcome))?.outcome ?? null
      await expect.poll(answered, { timeout: 15_000 }).not.toBeNull()
      const [mixed, legacy] = [await journey.addressOf(name, 4), await journey.addressOf(name, 1, true)]
      expect(JSON.parse((await answered()) ?? "{}").answer).toMatchObject({
        status: 3,
        returnData: [
          { "0": { salt: name, wallet: mixed } },
          { "1": { salt: "", wallet: standing } },
          { "2": { salt: name, wallet: legacy } }
        ]
      })
      expect(await journey.configurationOf(mixed)).toEqual(configOf(4, [keyOf(6)], [phone.passkey], 2))
      expect(await journey.configurationOf(legacy)).toEqual(configOf(1, [stack.signer]))
      expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before + 1)
      const held = Effect.flatMap(Budgets, (budgets) =>
        Effect.orDie(budgets.open(BigInt(stack.anvil.chainId)))
      )
      await expect.poll(() => second.runPromise(held), { timeout: 10_000 }).toEqual([])
    } finally {
      await second.dispose()
    }
  })
})
