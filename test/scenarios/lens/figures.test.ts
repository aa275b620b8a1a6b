import { describe, expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import { npmInterface, tokenAbi } from "./Abis.js"
import {
  completed,
  created,
  creationOf,
  ecdsaWallet,
  execute,
  executeBatch,
  opOf,
  passkeyWallet,
  type TestWallet,
  withLimits
} from "./Wallets.js"
import { dummyEcdsa, holder, type Op, useWorld } from "./World.js"

const world = useWorld()

/** An insufficient limit less than 32 below the smallest sufficient one; `high` is known to suffice. */
const minimum = async (high: bigint, holds: (x: bigint) => Promise<boolean>): Promise<bigint> => {
  let low = 0n
  let top = high
  while (top - low >= 32n) {
    const middle = (low + top) / 2n
    if (await holds(middle)) top = middle
    else low = middle
  }
  return low
}

interface Case {
  readonly name: string
  readonly op: Op
  readonly prove: (hash: string) => string
  readonly dummy: (hash: string) => string
}

/** The limits suffice, and are at most the bisected minima and 10,000. */
const holds = async (version: Version, { name, op, prove, dummy }: Case) => {
  const draft = { ...op, callGasLimit: 200_000n, verificationGasLimit: 400_000n }
  const estimated = await world.sign(version, draft, dummy)
  const measure = completed((await world.measure(version, [estimated]))[0], name)
  const { callGasLimit: call, verificationGasLimit: verification } = withLimits(estimated, measure, version)
  const works = async (verificationGasLimit: bigint, callGasLimit: bigint): Promise<boolean> => {
    const signed = await world.sign(version, { ...op, verificationGasLimit, callGasLimit }, prove)
    return (await world.simulate(version, [signed])).success
  }
  expect(await works(verification, call), name).toBe(true)
  const least =
    (await minimum(verification, (x) => works(x, call))) +
    (call === 0n ? 0n : await minimum(call, (x) => works(verification, x)))
  expect(verification + call, name).toBeLessThanOrEqual(least + 10_000n)
}

const stranger = "0x00000000000000000000000000000000000b0b01"
/** Calls of an existing wallet, with a used or unused key. */
const casesOf = (wallet: TestWallet): ReadonlyArray<Case> => {
  const token = (name: string, ...args: ReadonlyArray<unknown>) => ({
    target: world.token,
    value: 0n,
    data: tokenAbi.encodeFunctionData(name, args)
  })
  const sending = (to: string) =>
    execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [to, 123_456_789n]))
  const [used, fresh] = [1n, 1n << 64n]
  const of = (name: string, nonce: bigint, callData: string): Case => ({
    name,
    op: opOf(wallet, nonce, callData),
    ...wallet
  })
  return [
    of("ERC-20, first use of a key", fresh, sending(holder)),
    of("ERC-20, used key", used, sending(holder)),
    of("ERC-20 to a new holder", used, sending(stranger)),
    of("value to an account", used, execute(world.submitter.address, 1n, "0x")),
    of("value to a new account", used, execute(stranger, 1n, "0x")),
    of(
      "batch of three",
      used,
      executeBatch([
        token("approve", wallet.address, 5n),
        token("transferFrom", wallet.address, holder, 5n),
        { target: stranger, value: 1n, data: "0x" }
      ])
    ),
    of("no call", used, "0x"),
    of("10 KB of data", used, execute(stranger, 0n, `0x${"ab".repeat(10_000)}`))
  ]
}

describe.each(versions)("limits on %s suffice, and are at most the bisected minima and 10,000", (version) => {
  it.each([
    ["keys", ecdsaWallet, 8],
    ["passkeys", passkeyWallet, 2]
  ] as const)("of %s", async (_, make, count) => {
    const wallet = await make(world, `figures ${version}`)
    await world.setBalance(wallet.address, 10n ** 18n)
    await world.mint(wallet.address, 10n ** 24n)
    const creation = {
      name: "creation",
      op: creationOf(wallet),
      prove: world.deployerProof,
      dummy: dummyEcdsa
    }
    await holds(version, creation)
    await created(world, version, wallet)
    await world.clearDeposit(version, wallet.address)
    const cases = casesOf(wallet).slice(0, count)
    for (const each of cases) await holds(version, each)
    const depositTo = npmInterface(version, "EntryPoint").encodeFunctionData("depositTo", [wallet.address])
    await world.send(world.entryPoint(version), depositTo, 10n ** 18n)
    for (const each of cases.slice(0, 3)) await holds(version, each)
  })
})
