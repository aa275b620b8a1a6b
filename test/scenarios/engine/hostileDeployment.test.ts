import { id as hashOf, Interface, toBeHex } from "ethers"
import { expect, it } from "vitest"
import { Address, useStack } from "../../support/stack/Stack.js"
import { senderCreators } from "../../support/suite/Calls.js"
import { npmInterface } from "../lens/Abis.js"

const entryPoint = npmInterface("v0.7", "EntryPoint")
const creator = new Interface(["function createSender(bytes initCode) returns (address)"])

interface Call {
  readonly to: string
  readonly data: string
}

const hex = (value: number, bytes: number): string => toBeHex(value, bytes).slice(2)

/** Writes thirty slots: it uses more gas than a deployment, and any call of it gets as much. */
const unarmed = `0x${Array.from({ length: 30 }, (_, slot) => `600160${hex(slot + 1, 1)}55`).join("")}00`

/** Makes the call whenever it is called, and records success in slot 0. */
const armed = ({ data, to }: Call): string => {
  const size = hex(data.length / 2 - 1, 2)
  return `0x61${size}6100295f395f5f61${size}5f5f73${to.slice(2)}5af15f5500${data.slice(2)}`
}

/** The owner found it in the pool and uses it. */
const ways: ReadonlyArray<readonly [name: string, call: (initCode: string) => Call]> = [
  ["the factory", (initCode) => ({ to: initCode.slice(0, 42), data: `0x${initCode.slice(42)}` })],
  [
    "the SenderCreator",
    (initCode) => ({
      to: senderCreators["v0.7"],
      data: creator.encodeFunctionData("createSender", [initCode])
    })
  ]
]

const stack = useStack({ profile: { maxInFlight: 4 } }, (stack) => stack.create("one"))

/** The transaction that waits in the pool until the next block, as other readers see it; `null`: no creation waits. */
const pendingCreation = async (): Promise<string | null> => {
  for (const { input } of await stack.pool()) {
    const [ops] = entryPoint.decodeFunctionData("handleOps", input)
    for (const { initCode } of ops) if (initCode !== "0x") return initCode
  }
  return null
}

/** Mines the waiting transactions; returns their outcomes, in nonce order. */
const mine = async (): Promise<ReadonlyArray<number | null | undefined>> => {
  const sent = [...(await stack.pool())].sort((a, b) => Number(a.nonce) - Number(b.nonce))
  await stack.mine()
  const receipts = await Promise.all(sent.map(({ hash }) => stack.provider.getTransactionReceipt(hash)))
  return receipts.map((receipt) => receipt?.status)
}

it.each(ways)(
  "a creation in a lane with calls of a hostile contract is deployed by no call before it that goes through %s",
  async (name, call) => {
    const hostile = Address.unsafe(`0x${hashOf(name).slice(26)}`)
    const becomes = (code: string) => stack.provider.send("anvil_setCode", [hostile, code])
    await becomes(unarmed)
    const calls = () => stack.ask(stack.execute([stack.pay("one", hostile, 0n, { funcSignature: "hit()" })]))
    const salt = `through ${name}`
    const victim = stack.predict(salt)
    await stack.fund(victim, 10n ** 18n)

    await stack.automine(false)
    const before = calls()
    await stack.pooled(1)
    const created = stack.ask(stack.createWallets([salt]))
    // As long as a block takes. A creation visible meanwhile is copied, and the call before it is armed.
    const seen = await expect
      .poll(pendingCreation, { timeout: 2_000 })
      .not.toBeNull()
      .then(pendingCreation, () => null)
    if (seen !== null) await becomes(armed(call(seen)))
    expect(await mine()).toEqual([1])
    await expect.poll(pendingCreation, { timeout: 15_000 }).not.toBeNull()
    await becomes(armed(call(String(await pendingCreation()))))
    const behind = calls()
    await stack.pooled(2)
    expect(await mine()).toEqual([1, 1])

    for (const answer of [created, before, behind]) expect(await answer).toMatchObject({ status: 1 })
    expect(await stack.provider.getCode(victim)).not.toBe("0x")
    // The call after it did the work of the one before it.
    expect(await stack.provider.getStorage(hostile, 0)).toBe(toBeHex(1, 32))
  }
)
