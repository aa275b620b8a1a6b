import { AbiCoder, type Contract, concat, Interface, keccak256, toUtf8Bytes } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import {
  type EntryPointVersion,
  entryPoints,
  entryPointVersions
} from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { fundPaymaster } from "../../../src/hosts/cli/deploy/Suite.js"
import { type Chain, create, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, ecdsa } from "../../support/suite/Keys.js"
import { opSignature, unbound } from "../../support/suite/Layouts.js"
import { execute, hashOf, newOp, nonceOf, type Op, pack, refusal, signOp } from "../../support/suite/Ops.js"
import { sponsorship, withPaymaster } from "../../support/suite/Sponsor.js"

/** The development aggregator and its wallets, which behave as every ERC-4337 aggregator's do. */

let chain: Chain
let aggregator: Contract
let wallets: ReadonlyArray<string>
const owner = devKey(20)
const byOwner = (hash: string) => ecdsa(hash, owner)
const abi = new Interface(artifact("ProofAggregator").abi)
const failedOp = new Interface([
  "error FailedOp(uint256 opIndex, string reason)",
  "error SignatureValidationFailed(address aggregator)",
  "error WrongProof(address wallet)",
  "error WrongCount(uint256 proofs, uint256 operations)"
])

beforeAll(async () => {
  chain = await startChain()
  aggregator = await create("ProofAggregator", [], chain.stranger)
  const implementation = await create(
    "AggregatedWallet",
    [...Object.values(entryPoints), chain.suite.validator, await aggregator.getAddress()],
    chain.stranger
  )
  const beacon = await create(
    "WalletBeacon",
    [await implementation.getAddress(), chain.beaconOwner.address],
    chain.stranger
  )
  const made: Array<string> = []
  for (const _ of [1, 2, 3]) {
    const proxy = await create("WalletProxy", [await beacon.getAddress(), "0x"], chain.stranger)
    const address = await proxy.getAddress()
    const wallet = implementation.attach(address) as Contract
    const initialize = wallet.connect(chain.stranger).getFunction("initialize")
    await (await initialize.send(configOf(1, [owner]), chain.deployer.address)).wait()
    await chain.fund(address)
    made.push(address)
  }
  wallets = made
  await fundPaymaster(chain.stranger, chain.suite.paymaster, 10n ** 18n)
})
afterAll(() => chain.stop())

const struct = (version: EntryPointVersion) =>
  version === "v0.6"
    ? "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
    : "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"

/** What the aggregator answers a bundler that asks in the EntryPoint's name. */
const ask = async (version: EntryPointVersion, method: string, argument: unknown): Promise<string> => {
  const data = abi.encodeFunctionData(method, [argument])
  const to = await aggregator.getAddress()
  const answer = await chain.provider.call({ from: entryPoints[version], to, data })
  return String(AbiCoder.defaultAbiCoder().decode(["bytes"], answer)[0])
}

const aggregated = (version: EntryPointVersion, ops: ReadonlyArray<Op>): Promise<string> =>
  ask(
    version,
    `aggregateSignatures(${struct(version)}[])`,
    ops.map((op) => pack(version, op))
  )

const carried = async (version: EntryPointVersion, op: Op): Promise<Op> => ({
  ...op,
  signature: await ask(version, `validateUserOpSignature(${struct(version)})`, pack(version, op))
})

const toDomain = (op: Op): UserOperation.UserOperation => ({
  ...op,
  sender: Address.unsafe(op.sender),
  initCode: Hex.unsafe(op.initCode),
  callData: Hex.unsafe(op.callData),
  paymasterAndData: Hex.unsafe(op.paymasterAndData),
  signature: Hex.unsafe(op.signature)
})

interface Group {
  readonly ops: ReadonlyArray<Op>
  readonly aggregator: string
  readonly signature: string
}

const bundle = (version: EntryPointVersion, groups: ReadonlyArray<Group>) => ({
  from: chain.bundler.address,
  to: entryPoints[version],
  gasLimit: 10_000_000n,
  data: UserOperation.handleAggregatedOps(
    version,
    groups.map(({ aggregator, ops, signature }) => ({
      ops: ops.map(toDomain),
      aggregator: Address.unsafe(aggregator),
      signature: Hex.unsafe(signature)
    })),
    Address.unsafe(chain.bundler.address)
  )
})

/** Why the EntryPoint refuses the groups; undefined: it takes them. */
const verdict = async (version: EntryPointVersion, groups: ReadonlyArray<Group>) => {
  try {
    await chain.provider.call(bundle(version, groups))
    return undefined
  } catch (cause) {
    if (!(cause instanceof Error) || !("data" in cause)) throw cause
    const error = failedOp.parseError(String(cause.data))
    return error === null ? String(cause.data) : `${error.name} ${error.args.at(-1)}`
  }
}

/** An operation of each wallet, and their group. */
const grouped = async (version: EntryPointVersion) => {
  const conditions = {
    validUntil: (await chain.now()) + 600,
    validAfter: 1,
    bundler: chain.bundler.address
  }
  const ops = await Promise.all(
    wallets.map(async (wallet, i) =>
      signOp(
        chain,
        version,
        newOp(wallet, {
          nonce: await nonceOf(chain, version, wallet),
          callData: execute(devKey(60 + i).address, "0x", 1n)
        }),
        byOwner,
        conditions
      )
    )
  )
  const group: Group = {
    ops: await Promise.all(ops.map((op) => carried(version, op))),
    aggregator: await aggregator.getAddress(),
    signature: await aggregated(version, ops)
  }
  return { group, ops }
}

test.each(entryPointVersions)(
  "operations of one aggregator go through handleAggregatedOps of %s, under one signature that the aggregator has made of theirs",
  async (version) => {
    const { group } = await grouped(version)
    const before = await chain.provider.getBalance(devKey(60).address)
    const sent = await chain.bundler.sendTransaction(bundle(version, [group]))
    const receipt = await sent.wait()
    const events = (receipt?.logs ?? []).flatMap((log) => {
      const event =
        log.address === entryPoints[version] ? chain.entryPoint(version).interface.parseLog(log) : null
      return event?.name === "UserOperationEvent" ? [event.args.success] : []
    })
    expect(events).toEqual([true, true, true])
    expect(await chain.provider.getBalance(devKey(60).address)).toBe(before + 1n)
    const changed = keccak256(toUtf8Bytes("SignatureAggregatorChanged(address)"))
    // v0.8 does not say so of the end of the last group.
    expect(receipt?.logs.filter(({ topics }) => topics[0] === changed).length).toBe(
      version === "v0.8" ? 1 : 2
    )
  }
)

describe("operations of one aggregator", () => {
  const version = "v0.7"
  let ops: ReadonlyArray<Op>
  let group: Group
  beforeEach(async () => {
    const made = await grouped(version)
    ops = made.ops
    group = made.group
  })

  test("carry no proof in the bundle, and are of no use outside of their group", async () => {
    for (const op of group.ops) expect(op.signature.length).toBeLessThan(ops[0]?.signature.length ?? 0)
    expect(await refusal(chain, version, ops)).toBe("AA24 signature error")
    expect(await verdict(version, [{ ...group, aggregator: Address.zero, signature: "0x" }])).toBe(
      "FailedOp AA24 signature error"
    )
  })

  test("are refused when the signature is not of exactly these operations", async () => {
    const [first, ...rest] = group.ops
    if (first === undefined) throw new Error("three ops")
    const refused = `SignatureValidationFailed ${group.aggregator}`
    expect(await verdict(version, [group])).toBeUndefined()
    expect(await verdict(version, [{ ...group, ops: rest }])).toBe(refused)
    expect(await verdict(version, [{ ...group, ops: [...rest, first] }])).toBe(refused)
    expect(await verdict(version, [{ ...group, signature: "0x" }])).toBe(refused)
    const altered = { ...first, callData: execute(chain.stranger.address, "0x", 10n ** 17n) }
    expect(await verdict(version, [{ ...group, ops: [altered, ...rest] }])).toBe(refused)
    const foreign = await signOp(chain, version, first, (hash) => ecdsa(hash, chain.stranger))
    const signature = await aggregated(version, [foreign, ...ops.slice(1)])
    expect(await verdict(version, [{ ...group, signature }])).toBe(refused)
    await expect(carried(version, foreign)).rejects.toThrow()
  })

  test("keep their own window and bundler", async () => {
    const [op] = ops
    if (op === undefined) throw new Error("three ops")
    const under = async (conditions: { validUntil: number; bundler: string }) => {
      const signed = await signOp(chain, version, op, byOwner, { validAfter: 0, ...conditions })
      return verdict(version, [
        {
          ops: [await carried(version, signed)],
          aggregator: group.aggregator,
          signature: await aggregated(version, [signed])
        }
      ])
    }
    const now = await chain.now()
    expect(await under({ validUntil: now + 600, bundler: Address.zero })).toBeUndefined()
    expect(await under({ validUntil: now - 1, bundler: Address.zero })).toBe(
      "FailedOp AA22 expired or not due"
    )
    expect(await under({ validUntil: 0, bundler: chain.stranger.address })).toBe(
      "FailedOp AA24 signature error"
    )
  })

  test("may have a sponsor, whose signature stands behind what the aggregator leaves", async () => {
    const [wallet = ""] = wallets
    const op = withPaymaster(
      chain,
      version,
      newOp(wallet, { nonce: await nonceOf(chain, version, wallet), callData: execute(wallet) })
    )
    const signed = await signOp(chain, version, op, byOwner)
    const left = await carried(version, signed)
    const tail = await sponsorship(chain, version, op)
    const sponsored = { ...left, signature: concat([left.signature, tail]) }
    const signature = await aggregated(version, [signed])
    expect(await verdict(version, [{ ...group, signature, ops: [sponsored] }])).toBeUndefined()
    expect(await verdict(version, [{ ...group, signature, ops: [left] }])).toBe(
      "FailedOp AA34 signature error"
    )
  })

  test("do not include one that calls nothing, as a creation does: its own signature counts", async () => {
    const [wallet = ""] = wallets
    const op = newOp(wallet, { nonce: await nonceOf(chain, version, wallet) })
    const signed = await signOp(chain, version, op, byOwner)
    expect(await refusal(chain, version, [signed])).toBeUndefined()
    const foreign = ecdsa(await hashOf(chain, version, op), chain.stranger)
    expect(await refusal(chain, version, [{ ...op, signature: opSignature(unbound, foreign) }])).toBe(
      "AA24 signature error"
    )
    expect(
      await verdict(version, [{ ...group, ops: [signed], signature: await aggregated(version, [signed]) }])
    ).toBe("FailedOp AA24 signature error")
  })
})
