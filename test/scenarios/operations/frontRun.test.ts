import { AbiCoder, Interface, id as idOf, ZeroAddress } from "ethers"
import { expect, it } from "vitest"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import { keyOf, useStack } from "../../support/stack/Stack.js"
import { ecdsa } from "../../support/suite/Keys.js"
import { authorizationOf, configHash, deployDigest } from "../../support/suite/Layouts.js"
import { npmInterface } from "../lens/Abis.js"

/**
 * Another party lands one op of a pending bundle first: the whole bundle reverts, and the other ops are not at fault.
 */

const salts = ["a", "b", "c", "d"]
const stack = useStack({}, (stack) => stack.create(...salts))

/** The pending bundle, and a foreign transaction that comes before it. */
const pendingBundle = async () => {
  const [bundle] = await stack.pooled(1)
  if (bundle === undefined) throw new Error("a bundle was expected")
  const maxPriorityFeePerGas = BigInt(bundle.maxPriorityFeePerGas) + 1n
  const thief = keyOf(8).connect(stack.provider)
  const before = async (to: string, data: string) => {
    const fees = { gasLimit: 3_000_000n, maxFeePerGas: 400n * 10n ** 9n, maxPriorityFeePerGas }
    const { hash } = await thief.sendTransaction({ to, data, ...fees })
    await stack.mine()
    expect((await stack.provider.getTransactionReceipt(hash))?.status).toBe(1)
  }
  return { input: bundle.input, before }
}
const minedOn = async () => {
  await stack.pooled(1)
  await stack.automine(true)
  await stack.mine()
}

it("a bundled op that another party lands first is reported where it landed, and the others of its request go again, each time", async () => {
  const ids = salts.map((salt) => idOf(`front run ${salt}`))
  const { userOps } = await stack.estimate(salts.map((salt, n) => stack.hit(salt, ids[n] ?? "")))
  await stack.automine(false)
  const answer = stack.ask(stack.post(userOps, "userOpHash"))
  const thief = keyOf(8).address
  const types = [`${UserOperation.structOf("v0.7")}[]`, "address"]
  // Three times: as often as an op may revert by itself before it is abandoned.
  for (let n = 0; n < 3; n += 1) {
    const { before, input } = await pendingBundle()
    const [ops] = AbiCoder.defaultAbiCoder().decode(types, `0x${input.slice(10)}`)
    const copied = AbiCoder.defaultAbiCoder().encode(types, [ops.slice(0, 1), thief])
    await before(stack.settings.entryPoint, input.slice(0, 10) + copied.slice(2))
  }
  await minedOn()
  const { returnData, status } = await answer
  expect([status, await stack.counts(...ids)]).toEqual([1, [1, 1, 1, 1]])
  const senders = await Promise.all(
    returnData.map(async (element, n) => {
      const landed = await stack.provider.getTransaction(String(element[n]?.txHash))
      return landed?.from
    })
  )
  expect(senders).toEqual([thief, thief, thief, stack.signer.address])
})

const factory = new Interface([
  "function createWallet(bytes32 saltHash, uint256 custody, bool legacy, tuple(uint8 custody, uint8 threshold, address[] owners, tuple(bytes32 x, bytes32 y)[] passkeys) config, uint48 deadline, bytes authorization)"
])

/** The op's creation under an authorisation that names no submitter: any EOA may send it. */
const unbound = (initCode: string): string => {
  const args = factory.decodeFunctionData("createWallet", `0x${initCode.slice(42)}`)
  const [saltHash, custody, legacy, config, deadline] = args
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
  return factory.encodeFunctionData("createWallet", [...args.slice(0, 5), authorization])
}

it("a bundled creation that another party makes first (AA10) exists as requested, and the others are created without a failure", async () => {
  const names = ["x", "y", "z"]
  const wallets = names.map((name) => stack.predict(name))
  for (const wallet of wallets) await stack.fund(wallet, 10n ** 18n)
  await stack.automine(false)
  const answer = stack.ask(stack.createWallets(names))
  const { before, input } = await pendingBundle()
  const [ops] = npmInterface("v0.7", "EntryPoint").decodeFunctionData("handleOps", input)
  await before(stack.suite.factory, unbound(String(ops[1].initCode)))
  await stack.automine(true)
  await stack.mine()
  const { returnData, status } = await answer
  for (const wallet of wallets) expect(await stack.provider.getCode(wallet)).not.toBe("0x")
  expect({ status, returnData }).toEqual({
    status: 3,
    returnData: names.map((salt, n) => ({ [n]: { salt, wallet: wallets[n] } }))
  })
})
