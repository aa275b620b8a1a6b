import { AbiCoder, hexlify, Interface, id as idOf, randomBytes, ZeroAddress } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { npmInterface } from "../../support/lens/Abis.js"
import * as Handed from "../../support/stack/Handed.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { ecdsa } from "../../support/suite/Keys.js"
import { authorizationOf, configHash, deployDigest } from "../../support/suite/Layouts.js"

/** Somebody lands one op of a pending bundle first: the whole bundle reverts, and the others are nobody's fault. */

const submitter = keyOf(1).address
const salts = ["a", "b", "c", "d"]
let stack: Stack
let counter: Address.Address

beforeAll(async () => {
  stack = await startStack()
  counter = Address.unsafe(await stack.counter.getAddress())
  await stack.create(...salts)
})
afterAll(() => stack.stop())
afterEach(() => stack.provider.send("evm_setAutomine", [true]))

const fresh = (name: string) => idOf(`${name} ${hexlify(randomBytes(8))}`)
const countOf = async (id: string): Promise<number> => Number(await stack.counter.getFunction("count")(id))

const hit = (salt: string, id: string): Operation => ({
  salt,
  walletCustody: 1,
  to: counter,
  funcSignature: "hit(bytes32)",
  funcParams: [id]
})

interface Pooled {
  readonly input: string
  readonly maxPriorityFeePerGas: string
}
const pooled = async (): Promise<ReadonlyArray<Pooled>> => {
  const { pending } = await stack.provider.send("txpool_content", [])
  const own = Object.entries<Record<string, Pooled>>(pending).find(
    ([from]) => from.toLowerCase() === submitter.toLowerCase()
  )
  return Object.values(own?.[1] ?? {})
}

/** Lands the op at that place of the pending bundle before the bundle. */
const frontRun = async (version: Version, place: number): Promise<void> => {
  await expect.poll(async () => (await pooled()).length, { timeout: 10_000 }).toBe(1)
  const [bundle] = await pooled()
  if (bundle === undefined) throw new Error("a bundle was expected")
  const { input } = bundle
  const types = [`${UserOperation.structOf(version)}[]`, "address"]
  const [ops] = AbiCoder.defaultAbiCoder().decode(types, `0x${input.slice(10)}`)
  const thief = keyOf(8).connect(stack.provider)
  const copied = AbiCoder.defaultAbiCoder().encode(types, [ops.slice(place, place + 1), thief.address])
  await thief.sendTransaction({
    to: entryPoints[version],
    data: input.slice(0, 10) + copied.slice(2),
    gasLimit: 3_000_000n,
    maxFeePerGas: 400_000_000_000n,
    maxPriorityFeePerGas: BigInt(bundle.maxPriorityFeePerGas) + 1n
  })
  await stack.provider.send("evm_mine", [])
}

describe.each(entryPointVersions)(
  "an op of a bundle that somebody else lands first, on EntryPoint %s",
  (version) => {
    it("is told where it landed, and the others of its request go again, as often as that happens", async () => {
      const handed = Handed.make(stack, Address.unsafe(entryPoints[version]))
      const ids = salts.map((salt) => fresh(`${version} ${salt}`))
      const { signer } = stack.settings
      const operations = salts.map((salt, n) => hit(salt, String(ids[n])))
      const ops = await handed.out(operations, { signer })
      const requests = ops.map((op) => handed.request(op, { settings: { signer } }))
      const [first] = requests
      if (first === undefined) throw new Error("a request was expected")
      await stack.provider.send("evm_setAutomine", [false])
      const answer = stack.ask(
        ExecuteEncoded.run(stack.caller(), {
          ...first,
          operations: requests.flatMap(({ operations }) => operations)
        })
      )
      // Three times, as often as an op is given up that reverts by itself.
      for (let n = 0; n < 3; n += 1) await frontRun(version, 0)
      await expect.poll(async () => (await pooled()).length, { timeout: 10_000 }).toBe(1)
      await stack.provider.send("evm_setAutomine", [true])
      await stack.provider.send("evm_mine", [])
      const { returnData, status } = await answer
      expect(status).toBe(1)
      expect(await Promise.all(ids.map(countOf))).toEqual([1, 1, 1, 1])
      const landed = returnData.map((element, n) => element[n]?.txHash)
      const senders = await Promise.all(
        landed.map(async (hash) => (await stack.provider.getTransaction(String(hash)))?.from)
      )
      const thief = keyOf(8).address
      expect(senders).toEqual([thief, thief, thief, submitter])
    })
  }
)

const factory = new Interface([
  "function createWallet(bytes32 saltHash, uint256 custody, bool legacy, tuple(uint8 custody, uint8 threshold, address[] owners, tuple(bytes32 x, bytes32 y)[] passkeys) config, uint48 deadline, bytes authorization)"
])

/** The same creation as that of the op, under an authorisation that names no submitter: anybody may send it. */
const unbound = (initCode: string): string => {
  const [saltHash, custody, legacy, config, deadline] = factory.decodeFunctionData(
    "createWallet",
    `0x${initCode.slice(42)}`
  )
  const { owners, passkeys, threshold } = config
  const digest = deployDigest(BigInt(stack.anvil.chainId), stack.suite.factory, {
    saltHash,
    custody: Number(custody),
    legacy,
    configHash: configHash({
      custody: Number(config.custody),
      threshold: Number(threshold),
      owners: [...owners],
      passkeys: [...passkeys]
    }),
    deadline: Number(deadline),
    bundler: ZeroAddress
  })
  const authorization = authorizationOf(ecdsa(digest, keyOf(3)), ZeroAddress)
  return factory.encodeFunctionData("createWallet", [
    saltHash,
    custody,
    legacy,
    config,
    deadline,
    authorization
  ])
}

describe.each(entryPointVersions)(
  "a creation of a bundle that somebody else makes first (AA10), on EntryPoint %s",
  (version) => {
    it("exists as it was wanted, and the others are created without a failure", async () => {
      const names = ["x", "y", "z"].map((name) => `${name} ${version}`)
      const wallets = names.map((name) => stack.predict(name))
      for (const wallet of wallets) await stack.fund(wallet, 10n ** 18n)
      const settings = { ...stack.settings, entryPoint: Address.unsafe(entryPoints[version]) }
      await stack.provider.send("evm_setAutomine", [false])
      const answer = stack.ask(
        CreateWallets.run(stack.caller(), {
          accounts: names.map((salt) => ({ salt, walletCustody: 1 })),
          settings
        })
      )
      await expect.poll(async () => (await pooled()).length, { timeout: 10_000 }).toBe(1)
      const [bundle] = await pooled()
      const [ops] = npmInterface(version, "EntryPoint").decodeFunctionData("handleOps", bundle?.input ?? "0x")
      const thief = keyOf(8).connect(stack.provider)
      const first = await thief.sendTransaction({
        to: stack.suite.factory,
        data: unbound(String(ops[1].initCode)),
        gasLimit: 1_000_000n,
        maxFeePerGas: 400_000_000_000n,
        maxPriorityFeePerGas: BigInt(bundle?.maxPriorityFeePerGas ?? 0) + 1n
      })
      await stack.provider.send("evm_mine", [])
      expect((await stack.provider.getTransactionReceipt(first.hash))?.status).toBe(1)
      await stack.provider.send("evm_setAutomine", [true])
      await stack.provider.send("evm_mine", [])
      const { returnData, status } = await answer
      const codes = await Promise.all(wallets.map((wallet) => stack.provider.getCode(wallet)))
      expect(codes.map((code) => code !== "0x")).toEqual([true, true, true])
      expect({ status, returnData }).toEqual({
        status: 3,
        returnData: names.map((salt, n) => ({ [n]: { salt, wallet: wallets[n] } }))
      })
    })
  }
)
