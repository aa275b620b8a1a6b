import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import type { Measure } from "../../../src/domain/erc4337/gas/GasLens.js"
import { npmInterface, tokenAbi } from "../../support/lens/Abis.js"
import { completed, withLimits } from "../../support/lens/Limits.js"
import { passkeyWallet } from "../../support/lens/Passkeys.js"
import {
  created,
  creationOf,
  ecdsaWallet,
  execute,
  executeBatch,
  opOf,
  type TestWallet
} from "../../support/lens/Wallets.js"
import { dummyEcdsa, holder, type Op, World } from "../../support/lens/World.js"

let world: World

beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

/** A limit that does not hold and lies less than 32 below the smallest that does; `high` is known to hold. */
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

interface Row {
  readonly name: string
  readonly measure: Measure
  readonly limits: { readonly verification: bigint; readonly call: bigint }
  readonly minima: { readonly verification: bigint; readonly call: bigint }
}

const asRow = (version: string, row: Row) => {
  const needed = row.minima.verification + row.minima.call
  const limits = row.limits.verification + row.limits.call
  return {
    version,
    op: row.name,
    lensVerification: Number(row.measure.creationGas + row.measure.validationGas),
    bookkeeping: Number(row.measure.bookkeepingGas),
    rest: Number(
      row.minima.verification -
        row.measure.bookkeepingGas -
        row.measure.creationGas -
        row.measure.validationGas
    ),
    minVerification: Number(row.minima.verification),
    limitVerification: Number(row.limits.verification),
    lensCall: Number(row.measure.callGas),
    minCall: Number(row.minima.call),
    limitCall: Number(row.limits.call),
    ratio: (Number(limits) / Number(needed + 10_000n)).toFixed(3)
  }
}

const figure = async (version: Version, { name, op, prove, dummy }: Case): Promise<Row> => {
  const estimated = await world.sign(
    version,
    { ...op, callGasLimit: 200_000n, verificationGasLimit: 400_000n },
    dummy
  )
  const [measured] = await world.measure(version, [estimated])
  const measure = completed(measured, name)
  const { callGasLimit: call, verificationGasLimit: verification } = withLimits(estimated, measure, version)
  const works = async (verificationGasLimit: bigint, callGasLimit: bigint): Promise<boolean> => {
    const signed = await world.sign(version, { ...op, verificationGasLimit, callGasLimit }, prove)
    return (await world.simulate(version, [signed])).success
  }
  expect(await works(verification, call), `${name}: the limits suffice`).toBe(true)
  const minima = {
    verification: await minimum(verification, (x) => works(x, call)),
    call: call === 0n ? 0n : await minimum(call, (x) => works(verification, x))
  }
  return { name, measure, limits: { verification, call }, minima }
}

const cases = async (
  wallet: TestWallet
): Promise<{ readonly before: Case; readonly after: ReadonlyArray<Case> }> => {
  await world.setBalance(wallet.address, 10n ** 18n)
  await world.mint(wallet.address, 10n ** 24n)
  const before: Case = {
    name: "creation",
    op: creationOf(wallet),
    prove: world.deployerProof,
    dummy: dummyEcdsa
  }
  const transfer = (to: string) => tokenAbi.encodeFunctionData("transfer", [to, 123_456_789n])
  const used = 1n
  const fresh = 1n << 64n
  const of = (name: string, nonce: bigint, callData: string): Case => ({
    name,
    op: opOf(wallet, nonce, callData),
    ...wallet
  })
  const stranger = "0x00000000000000000000000000000000000b0b01"
  return {
    before,
    after: [
      of("ERC-20, first use of a key", fresh, execute(world.token, 0n, transfer(holder))),
      of("ERC-20, used key", used, execute(world.token, 0n, transfer(holder))),
      of("ERC-20 to a new holder", used, execute(world.token, 0n, transfer(stranger))),
      of("value to an account", used, execute(world.submitter.address, 1n, "0x")),
      of("value to a new account", used, execute(stranger, 1n, "0x")),
      of(
        "batch of three",
        used,
        executeBatch([
          {
            target: world.token,
            value: 0n,
            data: tokenAbi.encodeFunctionData("approve", [wallet.address, 5n])
          },
          {
            target: world.token,
            value: 0n,
            data: tokenAbi.encodeFunctionData("transferFrom", [wallet.address, holder, 5n])
          },
          { target: stranger, value: 1n, data: "0x" }
        ])
      ),
      of("no call", used, "0x"),
      of("10 KB of data", used, execute(stranger, 0n, `0x${"ab".repeat(10_000)}`))
    ]
  }
}

const figures = async (version: Version, wallet: TestWallet, label: string, rows?: ReadonlyArray<string>) => {
  const table: Array<ReturnType<typeof asRow>> = []
  const add = async (item: Case, suffix = "") => {
    if (rows !== undefined && !rows.includes(item.name)) return
    table.push(asRow(version, await figure(version, { ...item, name: `${item.name}${suffix}${label}` })))
  }
  const { before, after } = await cases(wallet)
  await add(before)
  await created(world, version, wallet)
  await world.clearDeposit(version, wallet.address)
  for (const item of after) await add(item)
  const depositTo = npmInterface(version, "EntryPoint").encodeFunctionData("depositTo", [wallet.address])
  await world.send(world.entryPoint(version), depositTo, 10n ** 18n)
  for (const item of after.slice(0, 3)) await add(item, ", deposit")
  console.table(table)
  for (const row of table) expect(Number(row.ratio), row.op).toBeLessThanOrEqual(1)
}

describe.each(versions)("limits on %s", (version) => {
  it("suffice, and are at most the bisected minima and 10,000", async () => {
    await figures(version, await ecdsaWallet(world, `figures ${version}`), "")
  })

  it("do so for passkeys too", async () => {
    const wallet = await passkeyWallet(world, `figures ${version}`)
    await figures(version, wallet, ", passkey", [
      "creation",
      "ERC-20, first use of a key",
      "ERC-20, used key"
    ])
  })
})
