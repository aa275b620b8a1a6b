import { DatabaseSync } from "node:sqlite"
import { id as hashOf } from "ethers"
import { expect, it } from "vitest"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Known from "../../support/stack/Known.js"
import * as Power from "../../support/stack/Power.js"
import { Address, useStack } from "../../support/stack/Stack.js"

const stack = useStack({}, (stack) => stack.create("one"))

/** An earlier version's rows of accepted work: ops without their prepared fields. */
const asBefore = (database: string): void => {
  const file = new DatabaseSync(database)
  file.exec("update ops set prepared = null, good_until = null; update requests set context = null")
  file.close()
}

/** The request is accepted in a life whose power fails, by an earlier version of the program. */
const left = async (
  run: (caller: ReturnType<typeof stack.caller>) => Parameters<typeof stack.ask>[0],
  meanwhile: () => Promise<unknown> = () => Promise.resolve()
) => {
  const caller = stack.caller()
  const database = stack.database()
  const power = Power.make({ step: "accept", moment: "after" })
  const first = stack.begin({ database, ...power.life })
  await Known.past(stack, first)
  first.runFork(run(caller))
  await power.failed
  await first.dispose()
  asBefore(database)
  await meanwhile()
  return stack.living({ database }, (runtime) => stack.answerOf(runtime, caller.requestId))
}

it("issued ops that an earlier version accepted continue unchanged", async () => {
  const id = hashOf("earlier, encoded")
  const { userOps } = await stack.estimate([stack.hit("one", id)])
  const { answer } = await left((caller) => stack.post(userOps, "signingHash", {}, caller))
  expect(answer).toMatchObject({
    status: 1,
    returnData: [{ "0": { success: true, userOpHash: userOps[0]?.userOpHash } }]
  })
  expect(await stack.counts(id)).toEqual([1])
})

it("creations accepted by an earlier version are done, except for wallets made meanwhile", async () => {
  const salts = ["earlier x", "earlier y"]
  for (const salt of salts) await stack.fund(stack.predict(salt), 10n ** 18n)
  const entryPoint = Address.unsafe(entryPoints["v0.6"])
  const { answer } = await left(
    (caller) => stack.createWallets(salts, {}, caller),
    () => stack.ask(stack.createWallets(salts.slice(1), { entryPoint }))
  )
  // It deployed one of them.
  expect(answer).toMatchObject({ status: 3, txHashes: [answer.txHash] })
  for (const salt of salts) expect(await stack.provider.getCode(stack.predict(salt))).not.toBe("0x")
})
