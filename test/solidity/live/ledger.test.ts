import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { revertOf } from "../../support/suite/Calls.js"
import { type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, ecdsa } from "../../support/suite/Keys.js"
import { ledgerKey } from "../../support/suite/Layouts.js"
import { batch, createWallet, handleOps, newOp, nonceOf, signOp } from "../../support/suite/Ops.js"

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const owner = devKey(20)
const recipient = "0x00000000000000000000000000000000000abcde"

describe.each(entryPointVersions)("on EntryPoint %s", (version) => {
  let first: string
  let second: string
  beforeAll(async () => {
    first = await (await createWallet(chain, version, `first ${version}`, configOf(1, [owner]))).getAddress()
    second = await (
      await createWallet(chain, version, `second ${version}`, configOf(1, [owner]))
    ).getAddress()
  })

  const record = (key: string) => ({
    target: chain.suite.ledger,
    data: chain.ledger.interface.encodeFunctionData("record", [key])
  })
  const require = (wallet: string, key: string) => ({
    target: chain.suite.ledger,
    data: chain.ledger.interface.encodeFunctionData("requireRecorded", [wallet, key])
  })
  const pay = { target: recipient, value: 1n }
  const fail = { target: recipient, value: 10n ** 30n }
  const keyOf = async (wallet: string) =>
    ledgerKey(entryPoints[version], wallet, await nonceOf(chain, version, wallet))
  const sign = async (sender: string, callData: string) =>
    signOp(
      chain,
      version,
      newOp(sender, { nonce: await nonceOf(chain, version, sender), callData }),
      (hash) => ecdsa(hash, owner)
    )
  const failure = (key: string) => chain.ledger.interface.encodeErrorResult("DependencyFailed", [key])

  test("an operation runs after the one it depends on", async () => {
    const key = await keyOf(first)
    const ops = [
      await sign(first, batch(pay, record(key))),
      await sign(second, batch(require(first, key), pay))
    ]
    const { outcomes } = await handleOps(chain, version, ops)
    expect(outcomes.map((outcome) => outcome.success)).toEqual([true, true])
  })

  test("an operation fails when the one it depends on failed", async () => {
    const key = await keyOf(first)
    const ops = [
      await sign(first, batch(record(key), fail)),
      await sign(second, batch(require(first, key), pay))
    ]
    const before = await chain.provider.getBalance(recipient)
    const { outcomes } = await handleOps(chain, version, ops)
    expect(outcomes.map((outcome) => outcome.success)).toEqual([false, false])
    expect(outcomes[1]?.reason).toBe(failure(key))
    expect(await chain.provider.getBalance(recipient)).toBe(before)
  })

  test("an operation fails when the one it depends on comes later, or in an earlier transaction", async () => {
    const key = await keyOf(first)
    const dependent = await sign(second, batch(require(first, key), pay))
    const base = await sign(first, batch(pay, record(key)))
    const { outcomes } = await handleOps(chain, version, [dependent, base])
    expect(outcomes.map((outcome) => outcome.success)).toEqual([false, true])
    const late = await sign(second, batch(require(first, key), pay))
    expect((await handleOps(chain, version, [late])).outcomes[0]).toMatchObject({
      success: false,
      reason: failure(key)
    })
  })

  test("no wallet records for another one", async () => {
    const key = await keyOf(first)
    const forger = await createWallet(chain, version, `forger ${version}`, configOf(1, [owner]))
    const forged = await sign(await forger.getAddress(), batch(record(key)))
    const dependent = await sign(second, batch(require(first, key), pay))
    const { outcomes } = await handleOps(chain, version, [forged, dependent])
    expect(outcomes.map((outcome) => outcome.success)).toEqual([true, false])
  })
})

test("a key that was never recorded is a failed dependency", async () => {
  const key = `0x${"ab".repeat(32)}`
  const data = chain.ledger.interface.encodeFunctionData("requireRecorded", [recipient, key])
  expect(await revertOf(chain, { to: chain.suite.ledger, data }, chain.ledger.interface)).toBe(
    `DependencyFailed(${key})`
  )
})
