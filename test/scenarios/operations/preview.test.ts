import { readFileSync } from "node:fs"
import * as Redacted from "effect/Redacted"
import {
  Contract,
  ContractFactory,
  Interface,
  id,
  MaxUint256,
  type TransactionReceipt,
  ZeroAddress
} from "ethers"
import { describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as GetRequest from "../../../src/application/endpoints/operations/GetRequest.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import type { Shown } from "../../../src/application/preview/Preview.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Multicall from "../../../src/domain/evm/Multicall.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { setCode } from "../../../src/hosts/cli/deploy/Deployment.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import * as Known from "../../support/stack/Known.js"
import { Address, type Runtime, type Stack, useStack } from "../../support/stack/Stack.js"
import { compile } from "../lens/Solidity.js"

const dead = Address.unsafe("0x000000000000000000000000000000000000dEaD")
const compiled = compile(new URL("Tokens.sol", import.meta.url))
const deployed = new Map<string, Address.Address>()
const at = (name: string): Address.Address => deployed.get(name) ?? dead

const deploy = async (stack: Stack, name: string) => {
  const { abi, code } = compiled(name)
  const contract = await new ContractFactory(abi, code, stack.faucet).deploy()
  await contract.waitForDeployment()
  deployed.set(name, Address.unsafe(String(contract.target)))
}

const stack = useStack({}, async (stack) => {
  const wallets = await stack.create("one", "two")
  for (const wallet of wallets) await stack.mint(wallet, 1_000n)
  for (const name of ["Liar", "Collection", "Vault"]) await deploy(stack, name)
})

const call = (
  salt: string,
  to: string,
  funcSignature: string,
  ...funcParams: ReadonlyArray<string | ReadonlyArray<string>>
): Operation => ({
  salt,
  walletCustody: 1,
  to: Address.unsafe(to),
  funcSignature,
  funcParams
})

const previewsOf = async (
  operations: ReadonlyArray<Operation>,
  life: Runtime = stack.runtime,
  more: object = {}
): Promise<ReadonlyArray<Shown>> => {
  const { error, userOps } = await life.runPromise(
    EstimateGas.run(stack.caller(), { operations, settings: { ...stack.settings, ...more }, preview: true })
  )
  expect(error).toBeNull()
  return userOps.map(({ preview = null, previewError = null }) => ({ preview, previewError }))
}

const previewed = async (...given: Parameters<typeof previewsOf>) =>
  (await previewsOf(...given)).map(({ preview, previewError }) => {
    if (preview === null) throw new Error(previewError ?? "no preview")
    return preview
  })

/** Transfers of a mined transaction, as ethers reads its logs. */
const transfersOf = ({ logs }: TransactionReceipt) => {
  const erc20 = new Interface(["event Transfer(address indexed from, address indexed to, uint256 value)"])
  const others = new Interface([
    "event Transfer(address indexed from, address indexed to, uint256 indexed id)",
    "event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)",
    "event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] amounts)"
  ])
  return logs.flatMap((log) => {
    const isOfMany = log.topics.length === 4
    const parsed = (isOfMany ? others : erc20).parseLog(log)
    if (parsed === null || (log.topics.length < 3 && !isOfMany)) return []
    const { amounts, from, id, ids, to, value } = parsed.args.toObject()
    const of = (kind: string, amount: bigint, id: bigint | null) => ({
      kind,
      token: log.address,
      from,
      to,
      amount: amount.toString(),
      id: id === null ? null : id.toString()
    })
    if (parsed.name === "TransferSingle") return [of("erc1155", value, id)]
    if (parsed.name === "TransferBatch")
      return [...ids].map((each: bigint, place) => of("erc1155", amounts[place], each))
    return [isOfMany ? of("erc721", 1n, id) : of("erc20", value, null)]
  })
}

const deposits = new Interface([
  "function balanceOf(address) view returns (uint256)",
  "event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)"
])

const holdings = async (wallet: string, tokens: ReadonlyArray<string>) => {
  const entryPoint = new Contract(entryPoints["v0.7"], deposits, stack.provider)
  const coins =
    (await stack.provider.getBalance(wallet)) + (await entryPoint.getFunction("balanceOf")(wallet))
  const held = new Map<string, bigint>([["native", coins]])
  for (const token of tokens)
    held.set(token, await new Contract(token, deposits, stack.provider).getFunction("balanceOf")(wallet))
  return held
}

const cases: ReadonlyArray<[string, () => ReadonlyArray<Operation>]> = [
  ["a token transfer", () => [stack.transfer("one", dead, "3")]],
  ["a payment", () => [stack.pay("one", dead, 7n)]],
  [
    "ops that build on each other",
    () => [
      stack.transfer("one", stack.predict("two"), "500"),
      stack.transfer("two", dead, "1400"),
      stack.pay("two", stack.predict("one"), 5n)
    ]
  ],
  [
    "ops that depend on each other",
    () => [stack.transfer("one", dead, "1", { dependsOn: 1 }), stack.transfer("two", dead, "2")]
  ],
  ["coins that come back", () => [{ ...call("one", at("Vault"), "deposit()"), value: 10n }]],
  [
    "tokens that are one of a kind",
    () => [
      call("one", at("Collection"), "mint(address,uint256)", stack.predict("one"), "9"),
      call("one", at("Collection"), "send(address,uint256,uint256)", dead, "4", "6"),
      call("one", at("Collection"), "sendAll(address,uint256[],uint256[])", dead, ["1", "2"], ["3", "4"])
    ]
  ]
]

describe("a preview on anvil", () => {
  it.each(cases)("equals the chain after the execution of %s", async (_, operationsOf) => {
    const operations = operationsOf()
    const block = await stack.provider.getBlockNumber()
    const previews = await previewed(operations)
    const wallets = operations.map(({ salt = "" }) => stack.predict(salt))
    const tokens = [...new Set(previews.flatMap(({ net }) => (net ?? []).map(({ token }) => token)))].filter(
      (token) => token !== "native"
    )
    const before = new Map<string, Map<string, bigint>>()
    for (const wallet of wallets) before.set(wallet, await holdings(wallet, tokens))
    const { status, txHashes } = await stack.ask(stack.execute(operations))
    expect(status).toBe(1)
    const receipts = await Promise.all(txHashes.map((hash) => stack.provider.getTransactionReceipt(hash)))
    const logs = receipts.flatMap((receipt) => receipt ?? [])
    const costs = new Map<string, bigint>()
    for (const log of logs.flatMap((receipt) => receipt.logs)) {
      const parsed = deposits.parseLog(log)
      if (parsed?.name !== "UserOperationEvent") continue
      const { actualGasCost, sender } = parsed.args.toObject()
      costs.set(sender, (costs.get(sender) ?? 0n) + actualGasCost)
    }
    const transfers = previews.flatMap((preview) => preview.transfers)
    expect(transfers.filter(({ kind }) => kind !== "native")).toEqual(logs.flatMap(transfersOf))
    for (const wallet of new Set(wallets)) {
      const after = await holdings(wallet, tokens)
      for (const [token, value] of after) {
        const own = transfers.filter((each) => each.token === token && each.kind !== "erc1155")
        const change = own.reduce(
          (sum, { amount, from, to }) =>
            sum + (to === wallet ? BigInt(amount) : 0n) - (from === wallet ? BigInt(amount) : 0n),
          token === "native" ? -(costs.get(wallet) ?? 0n) : 0n
        )
        expect([token, value - (before.get(wallet)?.get(token) ?? 0n)]).toEqual([token, change])
      }
    }
    for (const preview of previews) {
      expect(preview).toMatchObject({ basis: "simulation", block: block.toString() })
      expect(preview.net?.every(({ isVerified }) => isVerified)).toBe(true)
    }
  })

  it("has the net of each op, and the names of tokens", async () => {
    const token = String(stack.token.target)
    const [preview] = await previewed([stack.transfer("one", dead, "3")])
    expect(preview?.net).toEqual([{ token, delta: "-3", isVerified: true }])
    expect(preview?.tokens).toEqual({ [token]: { symbol: "CTT", decimals: 18 } })
    const [coins] = await previewed([{ ...call("one", at("Vault"), "deposit()"), value: 10n }])
    expect(coins?.net).toEqual([{ token: "native", delta: "-5", isVerified: true }])
    expect(coins?.transfers.map(({ amount, from, kind, to }) => [kind, from, to, amount])).toEqual([
      ["native", stack.predict("one"), at("Vault"), "10"],
      ["native", at("Vault"), stack.predict("one"), "5"]
    ])
  })

  it("bounds the fee that the op then costs", async () => {
    const [preview] = await previewed([stack.transfer("one", dead, "1")])
    const { txHash } = await stack.ask(stack.execute([stack.transfer("one", dead, "1")]))
    const receipt = await stack.provider.getTransactionReceipt(txHash)
    const event = receipt?.logs
      .map((log) => deposits.parseLog(log))
      .find((each) => each?.name === "UserOperationEvent")
    const cost: bigint = event?.args.getValue("actualGasCost")
    const { expected, most, payer } = preview?.fees ?? { expected: "0", most: "0", payer: "" }
    expect(payer).toBe(stack.predict("one"))
    expect(cost).toBeLessThanOrEqual(BigInt(most))
    expect(BigInt(expected)).toBeLessThan(BigInt(most))
    expect(Number(BigInt(expected)) / Number(cost)).toBeGreaterThan(0.8)
    const paymaster = Address.unsafe(stack.suite.paymaster)
    const [sponsored] = await previewed([stack.transfer("one", dead, "1")], stack.runtime, { paymaster })
    expect(sponsored?.fees?.payer).toBe(paymaster)
  })

  it("lists the wallet's approvals", async () => {
    const token = String(stack.token.target)
    const collection = at("Collection")
    const approve = (amount: bigint) =>
      call("one", token, "approve(address,uint256)", dead, amount.toString())
    const previews = await previewed([
      approve(99n),
      approve(MaxUint256),
      approve(2n ** 96n - 1n),
      call("one", collection, "approve(address,uint256)", dead, "5"),
      call("one", collection, "approve(address,uint256)", ZeroAddress, "5"),
      call("one", collection, "setApprovalForAll(address,bool)", dead, "true"),
      call("one", collection, "setApprovalForAll(address,bool)", dead, "false")
    ])
    const all = (2n ** 256n - 1n).toString()
    expect(
      previews.flatMap(({ approvals }) =>
        approvals.map(({ amount, isUnlimited, kind, spender, token }) => [
          kind,
          token,
          spender,
          amount,
          isUnlimited
        ])
      )
    ).toEqual([
      ["erc20", token, dead, "99", false],
      ["erc20", token, dead, all, true],
      ["erc20", token, dead, (2n ** 96n - 1n).toString(), true],
      ["erc721", collection, dead, "1", false],
      ["erc721", collection, ZeroAddress, "0", false],
      ["all", collection, dead, all, true],
      ["all", collection, dead, "0", false]
    ])
  })

  it.each([
    ["log what does not move", "5", "0", "-5"],
    ["move what they do not log", "0", "5", null],
    ["log another amount", "5", "6", "-5"]
  ])("is not verified where tokens %s", async (_, logged, moved, delta) => {
    const token = at("Liar")
    const signature = "move(address,uint256,uint256)"
    const operations = [
      call("one", token, signature, dead, logged, moved),
      // Its log makes the token known.
      call("one", token, signature, dead, "1", "1")
    ]
    const [first, second] = await previewed(operations)
    expect(first?.net ?? []).toEqual(delta === null ? [] : [{ token, delta, isVerified: false }])
    expect(second?.net).toEqual([{ token, delta: "-1", isVerified: false }])
  })

  it("shows at most 500 transfers and approvals, and says which op has more", async () => {
    const many = (count: number) => call("one", at("Liar"), "many(uint256)", String(count))
    const shown = await previewsOf([many(300), many(201), many(10)])
    expect(shown.map(({ preview, previewError }) => [preview?.transfers.length, previewError])).toEqual([
      [300, null],
      [undefined, "expected at most 500 transfers and approvals of the request"],
      [10, null]
    ])
  })
})

describe("a preview's node", () => {
  const operations = () => [
    stack.transfer("one", dead, "3"),
    call("one", String(stack.token.target), "approve(address,uint256)", dead, MaxUint256.toString()),
    stack.pay("one", dead, 7n)
  ]
  const without = refusal(-32601, "the method does not exist")
  const onNode = async <A>(answer: typeof without | null, body: (url: string) => Promise<A>): Promise<A> => {
    const node = await startFaultyNode(stack.anvil.url)
    node.behave(({ method }, ask) =>
      method === "eth_simulateV1" && answer !== null ? Promise.resolve(answer) : ask()
    )
    try {
      return await body(node.url)
    } finally {
      await node.stop()
    }
  }

  it("is the operator's, whatever the caller's would say", () =>
    onNode(without, async (rpc) => {
      const [preview] = await previewed(operations(), stack.runtime, { rpc })
      expect(preview?.basis).toBe("simulation")
    }))

  it("is the caller's where the operator has none", () =>
    stack.living({ profile: { rpc: null } }, async (life) => {
      const [preview] = await previewed(operations(), life)
      expect(preview?.basis).toBe("simulation")
      await onNode(without, async (rpc) => {
        expect((await previewed(operations(), life, { rpc }))[0]?.basis).toBe("calldata")
      })
    }))

  it("leaves the calldata where it has no eth_simulateV1", () =>
    onNode(without, (url) =>
      stack.living({ profile: { rpc: Redacted.make(url) } }, async (life) => {
        const token = String(stack.token.target)
        const wallet = stack.predict("one")
        const previews = await previewed(operations(), life)
        const simulated = await previewed(operations())
        expect(previews.map(({ transfers }) => transfers)).toEqual(
          simulated.map(({ transfers }) => transfers)
        )
        expect(previews.map(({ approvals }) => approvals)).toEqual(
          simulated.map(({ approvals }) => approvals)
        )
        for (const { basis, block, net } of previews)
          expect({ basis, block, net }).toEqual({ basis: "calldata", block: null, net: null })
        expect(previews[0]?.tokens).toEqual({ [token]: { symbol: "CTT", decimals: 18 } })
        const [from] = await previewed(
          [
            call("one", token, "approve(address,uint256)", wallet, "9"),
            call("one", token, "transferFrom(address,address,uint256)", wallet, dead, "9")
          ],
          life
        ).then(([, second]) => second?.transfers ?? [])
        expect(from).toEqual({ kind: "erc20", token, from: null, to: dead, amount: "9", id: null })
      })
    ))

  it("names no sender of what Multicall3 moves", () =>
    onNode(without, async (rpc) => {
      await setCode(stack.provider, Multicall.address, artifact("Multicall").deployedBytecode)
      const token = String(stack.token.target)
      const data = stack.token.interface.encodeFunctionData("transfer", [dead, 0n])
      const operation = {
        ...call(
          "one",
          Multicall.address,
          "aggregate3((address,bool,bytes)[])",
          JSON.stringify([[token, "false", data]])
        ),
        value: 3n
      }
      const sendersOf = async (life: Runtime) =>
        (await previewed([operation], life)).flatMap(({ transfers }) => transfers.map(({ from }) => from))
      const wallet = stack.predict("one")
      expect(await sendersOf(stack.runtime)).toEqual([wallet, Multicall.address])
      await stack.living({ profile: { rpc: Redacted.make(rpc) } }, async (life) =>
        expect(await sendersOf(life)).toEqual([wallet, null])
      )
    }))

  it.each<[string, typeof without]>([
    ["refuses", refusal(-32000, "secret internals: https://node.example/key")],
    ["answers nonsense", { result: "0x" }]
  ])("fails no estimate when it %s", (_, answer) =>
    onNode(answer, (url) =>
      stack.living({ profile: { rpc: Redacted.make(url) } }, async (life) => {
        const [shown] = await previewsOf([stack.transfer("one", dead, "3")], life)
        expect(shown?.preview).toBeNull()
        expect(shown?.previewError).toMatch(/^the operator's node /)
        expect(shown?.previewError).not.toContain(url)
      })
    )
  )
})

describe("an asynchronous request's previews", () => {
  const stateOf = (life: Runtime, caller: Caller, wait = "0") =>
    life.runPromise(GetRequest.run(caller, { requestId: caller.requestId, wait }))

  it("stand in its state from acceptance on, sealed in the journal, also after a restart", async () => {
    const database = stack.database()
    const first = stack.begin({ database, ownsLanes: false })
    await Known.past(stack, first)
    const validAfter = (await stack.now()) + 1_000
    const caller = await stack.accepted(
      first,
      [stack.transfer("one", dead, "11"), stack.transfer("one", dead, "12", { validAfter })],
      {},
      true
    )
    const { previews } = await stateOf(first, caller)
    const token = String(stack.token.target)
    const of = (amount: string) => [
      { kind: "erc20", token, from: stack.predict("one"), to: dead, amount, id: null }
    ]
    expect(previews?.map(({ index, preview }) => [index, preview?.transfers])).toEqual([
      [0, of("11")],
      [1, of("12")]
    ])
    expect(previews?.map(({ preview }) => preview?.fees?.payer)).toEqual([stack.predict("one"), undefined])
    await first.dispose()
    expect(readFileSync(database).toString("latin1")).not.toContain("isVerified")
    await stack.living({ database }, async (life) =>
      expect((await stateOf(life, caller)).previews).toEqual(previews)
    )
  })

  it("are null where it does not ask", () =>
    stack.living({}, async (life) => {
      const caller = await stack.accepted(life, [stack.hit("two", id("without previews"))])
      expect(await stateOf(life, caller, "30")).toMatchObject({ state: "final", previews: null })
    }))

  it("are refused to a caller that waits, and of more operations than one run has", async () => {
    const operations = [stack.hit("one", id("never"))]
    const refused = (path: object) => ({ code: "invalid_request", details: [path] })
    expect(await stack.refused(stack.execute(operations, {}, stack.caller(), true))).toMatchObject(
      refused({ path: "preview" })
    )
    const many = Array.from({ length: 257 }, () => operations).flat()
    const asked = { ...stack.caller(), isAsynchronous: true }
    expect(await stack.refused(stack.execute(many, {}, asked, true))).toMatchObject(
      refused({ path: "preview" })
    )
  })
})
