import * as Result from "effect/Result"
import { Interface } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, startStack } from "../../support/stack/Stack.js"
import { create } from "../../support/suite/Chain.js"
import { use } from "../../support/Use.js"

/** Other parties' paymasters that a request names only by their address. */

const stack = use(startStack)
const stake = new Interface(["function depositTo(address) payable"])
const stranger = () => keyOf(8).connect(stack.provider) as ReturnType<typeof keyOf>

const deployed = async (name: string, ...args: ReadonlyArray<unknown>): Promise<Address.Address> =>
  Address.unsafe(await (await create(name, args, stranger())).getAddress())

const deposit = async (paymaster: Address.Address, wei: bigint): Promise<void> => {
  for (const to of Object.values(entryPoints)) {
    const data = stake.encodeFunctionData("depositTo", [paymaster])
    await (await stack.faucet.sendTransaction({ to, data, value: wei })).wait()
  }
}

/** The contract's vices, by their number. */
const [honest, reverts, , , , refusesSignature, expired, , failsAfterwards] = Array.from(
  { length: 11 },
  (_, vice) => vice
)

describe.each(entryPointVersions)("a paymaster named by its address, on EntryPoint %s", (version) => {
  let journey: Journey.Journey
  let wallet: Address.Address
  beforeAll(async () => {
    journey = Journey.make(stack, version)
    const salt = `named ${version}`
    await stack.ask(journey.create([{ salt, walletCustody: 1 }], { paymaster: stack.suite.paymaster }))
    wallet = await journey.addressOf(salt, 1)
    await stack.mint(wallet, 100n)
  })

  const refusal = async (paymaster: Address.Address) => {
    const failure = await stack.refused(
      journey.execute(journey.transfer(wallet, Journey.recipient()), { paymaster })
    )
    const [detail] = "details" in failure ? failure.details : []
    return { code: failure.code, message: detail?.message, missing: detail?.missing }
  }

  it("pays for wallets without funds, creation included", async () => {
    const paymaster = await deployed("OpenPaymaster")
    await deposit(paymaster, 10n ** 18n)
    const salt = `open ${version}`
    await stack.ask(journey.create([{ salt, walletCustody: 1 }], { paymaster }))
    const created = await journey.addressOf(salt, 1)
    await stack.mint(created, 10n)
    const to = Journey.recipient()
    const answer = await stack.ask(journey.execute(journey.transfer(created, to), { paymaster }))
    await journey.transferred(answer, created, to)
    expect(await stack.provider.getBalance(created)).toBe(0n)
  })

  it("with too small a deposit is 422 with AA31 and the shortfall, and exactly that suffices", async () => {
    const paymaster = await deployed("OpenPaymaster")
    const { code, message, missing } = await refusal(paymaster)
    expect(code).toBe("insufficient_funds")
    expect(message).toContain(`paymaster ${paymaster} lacks ${missing} wei`)
    expect(message).toContain("AA31")
    await deposit(paymaster, (BigInt(String(missing)) * 3n) / 2n)
    const to = Journey.recipient()
    const answer = await stack.ask(journey.execute(journey.transfer(wallet, to), { paymaster }))
    await journey.transferred(answer, wallet, to)
  })

  it.each([
    ["reverts", reverts, ["AA33", "paymaster's validation reverted"]],
    ["refuses the signature", refusesSignature, ["AA34"]],
    ["has expired", expired, ["AA32"]],
    ["fails after the call", failsAfterwards, ["AA50"]]
  ] as const)("is 422 with its address and the EntryPoint's code when it %s", async (_, vice, [reason]) => {
    const paymaster = await deployed("HostilePaymaster", vice)
    await deposit(paymaster, 10n ** 18n)
    const { code, message } = await refusal(paymaster)
    expect(code).toBe("execution_failed")
    expect(message).toContain(paymaster)
    expect(message).toContain(reason)
  })

  it("without code is AA30", async () => {
    const paymaster = Journey.recipient()
    await deposit(paymaster, 10n ** 18n)
    expect((await refusal(paymaster)).message).toContain("AA30")
  })

  it("has its own limits in an issued op, and pays for it when it comes back", async () => {
    const paymaster = await deployed("HostilePaymaster", honest)
    await deposit(paymaster, 10n ** 18n)
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to), { paymaster })
    const decoded = Result.getOrThrow(UserOperation.decode(version, Hex.unsafe(op.encodedUserOp)))
    const parts = PaymasterData.read(version, decoded.paymasterAndData)
    expect(parts).toMatchObject({ paymaster, data: "0x" })
    if (version !== "v0.6") expect(parts?.limits.verificationGasLimit).toBeGreaterThan(5_000n)
    expect(parts?.limits.postOpGasLimit).toBe(0n)
    const answer = await stack.ask(journey.executeEncoded(op, undefined, { paymaster }))
    await journey.transferred(answer, wallet, to)
  })
})

it("a creation takes no funds from a wallet with a balance, where a paymaster is named", async () => {
  const journey = Journey.make(stack, "v0.7")
  const accounts = ["rich", "poor"].map((salt) => ({ salt, walletCustody: 1 as const }))
  const wallet = await journey.addressOf("rich", 1)
  await stack.fund(wallet, 10n ** 18n)
  expect((await stack.ask(journey.create(accounts, { paymaster: stack.suite.paymaster }))).status).toBe(1)
  expect(await stack.provider.getBalance(wallet)).toBe(10n ** 18n)
})

describe("operations of one request", () => {
  it("share a paymaster's deposit: the first that it covers goes, the others are refused", async () => {
    const journey = Journey.make(stack, "v0.7")
    const paymaster = await deployed("OpenPaymaster")
    const salts = ["together 1", "together 2", "together 3"]
    await stack.ask(
      journey.create(
        salts.map((salt) => ({ salt, walletCustody: 1 as const })),
        { paymaster: stack.suite.paymaster }
      )
    )
    const wallets = await Promise.all(salts.map((salt) => journey.addressOf(salt, 1)))
    for (const wallet of wallets) await stack.mint(wallet, 10n)
    const operations = wallets.map((wallet) => journey.transfer(wallet, Journey.recipient()))
    const settings = { ...journey.settings, paymaster }
    const estimate = () => stack.ask(EstimateGas.run(stack.caller(), { operations, settings }))
    expect(await estimate()).toMatchObject({ status: 0, userOps: [] })
    const refused = await stack.refused(
      journey.execute(operations[0] ?? journey.transfer(paymaster, paymaster), { paymaster })
    )
    const [detail] = "details" in refused ? refused.details : []
    const required = BigInt(String(detail?.required))
    await deposit(paymaster, (required * 5n) / 2n)
    const { error, status, userOps } = await estimate()
    expect(status).toBe(0)
    expect(userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[0], [1]])
    expect(error).toContain("operations[2]: insufficient funds: paymaster")
  })
})
