import { type ChildProcess, execFile } from "node:child_process"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import * as Hook from "../../../src/application/endpoints/policies/DecisionHook.js"
import * as SignMessage from "../../../src/application/endpoints/signing/SignMessage.js"
import * as SignMessages from "../../../src/application/endpoints/signing/SignMessages.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import * as Metrics from "../../../src/application/observe/Metrics.js"
import { Settings } from "../../../src/application/ports/operator/Settings.js"
import * as StandardWebhook from "../../../src/domain/crypto/StandardWebhook.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as Decider from "../../support/http/Decider.js"
import { account, errorsOf, type Ports, type Runtime, useStack } from "../../support/stack/Stack.js"

const stack = useStack({}, async (stack) => {
  for (const wallet of await stack.create("one", "two")) await stack.mint(wallet, 1_000n)
  await stack.provider.send("evm_setIntervalMining", [1])
})

let decider: Awaited<ReturnType<typeof Decider.start>>
beforeAll(async () => {
  decider = await Decider.start()
})
afterEach(() => {
  decider.asked.length = 0
  decider.behave(Decider.json({ decision: "allow" }))
})
afterAll(() => decider.stop())

const shop = Address.unsafe(`0x${"50".repeat(20)}`)

/** Failure of the effect in this life; null: none. */
const refusalOf = <A>(life: Runtime, effect: Effect.Effect<A, Failure, Ports>): Promise<Failure | null> =>
  life.runPromise(Effect.match(effect, { onFailure: (failure) => failure, onSuccess: () => null }))

const under = <A>(body: (life: Runtime) => Promise<A>, more: Parameters<typeof decider.hook>[0] = {}) =>
  stack.living({ decisionHook: decider.hook(more) }, body)

describe("a decision hook", () => {
  it("receives movements, previews and a signature before the request is accepted", () =>
    under(async (life) => {
      const caller = { ...stack.caller(), metadata: { order: "7" } }
      await life.runPromise(
        stack.execute([stack.transfer("one", shop, "5"), stack.pay("two", shop, 9n)], {}, caller)
      )
      expect(await stack.balanceOf(shop)).toBe(5n)
      const [question, ...more] = decider.asked
      expect(more).toEqual([])
      const token = Address.unsafe(String(stack.token.target))
      expect(question?.data).toMatchObject({
        accountId: account,
        requestId: caller.requestId,
        keyId: null,
        endpoint: "/execute",
        chainId: String(stack.anvil.chainId),
        metadata: { order: "7" },
        sponsored: false,
        elements: [
          {
            index: 0,
            wallet: stack.predict("one"),
            movements: [{ kind: "erc20.transfer", contract: token, asset: token, to: shop, amount: "5" }],
            preview: { basis: "simulation", transfers: [{ token, to: shop, amount: "5" }] },
            previewError: null
          },
          {
            index: 1,
            movements: [{ kind: "native", to: shop, amount: "9" }],
            preview: { net: [{ token: "native", delta: "-9", isVerified: true }] }
          }
        ]
      })
      expect(BigInt(question?.data.mostCost)).toBeGreaterThan(0n)
      const headers = question?.headers ?? {}
      const message = {
        id: String(headers["webhook-id"]),
        timestamp: Number(headers["webhook-timestamp"]),
        body: question?.body ?? ""
      }
      expect(headers["webhook-signature"]).toBe(StandardWebhook.sign(Decider.secret, message))
    }))

  it("refuses with its reason, and nothing is sent or stored", () =>
    under(async (life) => {
      decider.behave(Decider.json({ decision: "refuse", reason: "not a supplier" }))
      const [nonce, caller] = [await stack.nonce(), stack.caller()]
      expect(await refusalOf(life, stack.execute([stack.pay("one", shop, 1n)], {}, caller))).toMatchObject({
        code: "policy_refused",
        message: "refused by a decision hook: not a supplier"
      })
      expect([await stack.nonce(), await stack.requestOf(life, caller.requestId)]).toEqual([nonce, null])
    }))

  it("refuses single elements, with those that depend on them", () =>
    under(async (life) => {
      decider.behave(Decider.json({ decision: "allow", elements: [{ index: 0, decision: "refuse" }] }))
      const ids = ["a", "b", "c"].map((name) => hashOf(`single ${name}`))
      const [a = "", b = "", c = ""] = ids
      const refusals = () =>
        life.runPromise(Metric.value(Metric.withAttributes(Metrics.policyRefusals, { reason: "hook" })))
      const before = await refusals()
      const answer = await life.runPromise(
        stack.execute([stack.hit("one", a), stack.hit("one", b, { dependsOn: 0 }), stack.hit("two", c)])
      )
      expect((await refusals()).count - before.count).toBe(1)
      expect(errorsOf(answer)).toEqual([
        "refused by a decision hook: no reason given",
        "dependency failed: operation 0",
        null
      ])
      expect(await stack.counts(...ids)).toEqual([0, 0, 1])
    }))

  it("decides about transactions of the signer", () =>
    under(async (life) => {
      decider.behave(Decider.json({ decision: "refuse" }))
      const refusal = await life.runPromise(Effect.flip(stack.transact({ to: shop, value: 3n })))
      expect(refusal.code).toBe("policy_refused")
      expect(decider.asked[0]?.data.elements).toMatchObject([
        { movements: [{ kind: "native", amount: "3" }] }
      ])
    }))

  it("receives no repeat of an accepted request", () =>
    under(async (life) => {
      const idempotency = { key: "once", bodyHash: Keccak.hashText("once") }
      const send = () =>
        life.runPromise(
          stack.execute([stack.hit("one", hashOf("repeat"))], {}, { ...stack.caller(), idempotency })
        )
      const first = await send()
      decider.behave(Decider.json({ decision: "refuse" }))
      expect([await send(), decider.asked.length]).toEqual([first, 1])
    }))

  it("limited to payments or sponsored requests receives no other requests", async () => {
    const hit = (name: string) => stack.hit("one", hashOf(`on ${name}`), { funcSignature: "hit(bytes32)" })
    await under(
      async (life) => {
        await life.runPromise(stack.execute([hit("unpaid")]))
        expect(decider.asked).toEqual([])
        const paymaster = Address.unsafe(stack.suite.paymaster)
        await life.runPromise(stack.execute([hit("sponsored")], { paymaster }))
        expect(decider.asked.map(({ data }) => data.sponsored)).toEqual([true])
      },
      { on: "sponsored" }
    )
    decider.asked.length = 0
    await under(
      async (life) => {
        await stack.fund(stack.predict("three"), 10n ** 18n)
        await life.runPromise(stack.createWallets(["three"]))
        expect(decider.asked).toEqual([])
        await life.runPromise(stack.execute([hit("call")]))
        expect(decider.asked).toHaveLength(1)
      },
      { on: "payments" }
    )
  })
})

describe("without a valid answer of a decision hook, nothing is sent: the receiver", () => {
  const cases: ReadonlyArray<readonly [string, Parameters<typeof decider.behave>[0]]> = [
    ["does not answer in time", () => {}],
    ["sends its answer too slowly", (response) => void response.writeHead(200).write('{"decision":')],
    ["cuts the connection", (response) => void response.destroy()],
    ["answers another status", (response) => void response.writeHead(201).end('{"decision":"allow"}')],
    ["answers an error", (response) => void response.writeHead(500).end()],
    ["answers more than 64 KiB", Decider.json({ decision: "allow", reason: " ".repeat(65_536) })],
    [
      "gives a reason of more than 200 characters",
      Decider.json({ decision: "allow", reason: "x".repeat(201) })
    ],
    ["answers no JSON", (response) => void response.writeHead(200).end("allow")],
    [
      "decides twice",
      (response) => void response.writeHead(200).end('{"decision":"refuse","decision":"allow"}')
    ],
    ["asks for approval", Decider.json({ decision: "ask", ask: { group: "finance", need: 1 } })],
    [
      "decides about an unknown element",
      Decider.json({ decision: "allow", elements: [{ index: 1, decision: "allow" }] })
    ],
    ["misspells a member", Decider.json({ decision: "allow", element: [{ index: 0, decision: "refuse" }] })]
  ]

  it.each(cases)("%s", (_, answer) =>
    under(
      async (life) => {
        decider.behave(answer)
        const nonce = await stack.nonce()
        expect(await refusalOf(life, stack.execute([stack.pay("one", shop, 1n)]))).toMatchObject({
          code: "decision_unavailable",
          message: "no decision: the operator's hook has not decided"
        })
        expect([await stack.nonce(), decider.asked.length]).toEqual([nonce, 1])
      },
      { timeoutMillis: 300 }
    )
  )

  it("redirects to a receiver that allows", () =>
    under(async (life) => {
      const other = await Decider.start()
      decider.behave((response) => void response.writeHead(307, { location: other.url }).end())
      expect((await refusalOf(life, stack.execute([stack.pay("one", shop, 1n)])))?.code).toBe(
        "decision_unavailable"
      )
      other.stop()
      expect(other.asked).toEqual([])
    }))

  it("is gone", async () => {
    const gone = await Decider.start()
    gone.stop()
    await under(
      async (life) =>
        expect((await refusalOf(life, stack.execute([stack.pay("one", shop, 1n)])))?.code).toBe(
          "decision_unavailable"
        ),
      { url: Redacted.make(gone.url) }
    )
  })
})

const scheduled = async (life: Runtime, id: string) => {
  const validAfter = (await stack.now()) + 4
  return stack.accepted(life, [stack.hit("one", id, { validAfter })], { metadata: { run: "due" } })
}

describe("a decision hook on scheduled work", () => {
  it("decides at acceptance and again when the work is due, and may refuse it then", () =>
    under(async (life) => {
      const id = hashOf("due refused")
      const { requestId } = await scheduled(life, id)
      expect(decider.asked[0]?.data).toMatchObject({
        elements: [{ index: 0, preview: { basis: "simulation" } }]
      })
      decider.behave(Decider.json({ decision: "refuse", reason: "too late" }))
      expect(await stack.answerOf(life, requestId)).toMatchObject({ failure: { code: "policy_refused" } })
      expect(decider.asked.map(({ data }) => data.metadata)).toEqual([{ run: "due" }, { run: "due" }])
      expect(await stack.counts(id)).toEqual([0])
    }))

  it("delays due work until it answers", () =>
    under(async (life) => {
      const id = hashOf("due delayed")
      const { requestId } = await scheduled(life, id)
      decider.behave((response) => void response.writeHead(503).end())
      await expect.poll(() => decider.asked.length, { timeout: 10_000 }).toBeGreaterThan(1)
      expect(await stack.counts(id)).toEqual([0])
      decider.behave(Decider.json({ decision: "allow" }))
      expect(await stack.answerOf(life, requestId)).toMatchObject({ answer: { status: 1 } })
      expect(await stack.counts(id)).toEqual([1])
    }))
})

describe("a decision hook on signatures", () => {
  const words = (members: string) =>
    members.split(", ").map((each) => ({ type: each.split(" ")[0] ?? "", name: each.split(" ")[1] ?? "" }))
  const stranger = `0x${"51".repeat(20)}`
  const permit = (spender: string) => ({
    types: {
      Permit: words("address owner, address spender, uint256 value, uint256 nonce, uint256 deadline")
    },
    primaryType: "Permit",
    domain: { chainId: stack.anvil.chainId, verifyingContract: String(stack.token.target) },
    message: { owner: stack.signer.address, spender, value: 70, nonce: 0, deadline: 1 }
  })
  const sign = (life: Runtime, request: Omit<SignMessages.Request, "signer">) =>
    life.runPromise(
      Effect.match(SignMessages.run(stack.caller(), { signer: stack.settings.signer, ...request }), {
        onFailure: ({ code }) => code as string,
        onSuccess: ([answer]) => answer?.errors ?? null
      })
    )
  const permits = (...spenders: ReadonlyArray<string>) => ({
    messages: spenders.map((each) => JSON.stringify(permit(each))),
    eip712: {}
  })
  const signMessage = (life: Runtime) =>
    refusalOf(
      life,
      SignMessage.run(stack.caller(), {
        salt: "one",
        walletCustody: 1,
        typedData: permit(shop),
        settings: { rpc: stack.settings.rpc, signer: stack.settings.signer }
      } as unknown as SignMessage.Request)
    )

  it("receives what a permit allows, and refuses single messages", () =>
    under(async (life) => {
      decider.behave(
        Decider.json({
          decision: "allow",
          reason: "unknown",
          elements: [{ index: 1, decision: "refuse" }]
        })
      )
      expect(await sign(life, permits(shop, stranger))).toEqual([
        null,
        "policy_refused: refused by a decision hook: unknown"
      ])
      const token = Address.unsafe(String(stack.token.target))
      const document = {
        chainId: String(stack.anvil.chainId),
        verifyingContract: token,
        primaryType: "Permit"
      }
      expect(decider.asked.map(({ data }) => data)).toMatchObject([
        {
          accountId: account,
          endpoint: "/sign",
          chainId: null,
          sponsored: false,
          mostCost: "0",
          elements: [
            {
              index: 0,
              wallet: Address.unsafe(stack.signer.address),
              movements: [
                { kind: "sign.typedData", document },
                { kind: "erc20.approve", asset: token, to: shop, amount: "70", document }
              ],
              preview: null
            },
            { index: 1 }
          ]
        }
      ])
    }))

  it("limited to payments receives permits and hashes, and no personal messages", () =>
    under(
      async (life) => {
        decider.behave(Decider.json({ decision: "refuse" }))
        expect(await sign(life, { messages: ["a login"] })).toBeNull()
        expect(decider.asked).toEqual([])
        expect(await sign(life, permits(shop))).toBe("policy_refused")
        expect(await sign(life, { messages: [Keccak.hashText("an order")], hashed: true })).toBe(
          "policy_refused"
        )
        expect(decider.asked).toHaveLength(2)
      },
      { on: "payments" }
    ))

  it("decides about messages of wallets", () =>
    under(async (life) => {
      expect(await signMessage(life)).toBeNull()
      decider.behave(Decider.json({ decision: "refuse" }))
      expect((await signMessage(life))?.code).toBe("policy_refused")
      expect(decider.asked.map(({ data }) => [data.endpoint, data.chainId, data.elements[0].wallet])).toEqual(
        [1, 2].map(() => ["/signMessage", String(stack.anvil.chainId), stack.predict("one")])
      )
    }))

  it("has nothing signed without a valid answer", () =>
    under(
      async (life) => {
        decider.behave((response) => void response.writeHead(500).end())
        expect(await sign(life, permits(shop))).toBe("decision_unavailable")
        expect((await signMessage(life))?.code).toBe("decision_unavailable")
      },
      { timeoutMillis: 300 }
    ))
})

describe("an account's decision hook", () => {
  const request = () => ({ url: decider.url, timeoutMillis: 300 })

  it("decides under its own secret besides the operator's; the strictest of both counts", () =>
    under(async (life) => {
      const { secret } = await life.runPromise(Hook.set(stack.caller(), request()))
      decider.behave((response, { body, headers }) => {
        const message = {
          id: String(headers["webhook-id"]),
          timestamp: Number(headers["webhook-timestamp"]),
          body
        }
        const isOwn = headers["webhook-signature"] === StandardWebhook.sign(secret, message)
        Decider.json({ decision: isOwn ? "refuse" : "allow", reason: "mine" })(response, {
          body,
          headers,
          data: null
        })
      })
      expect((await refusalOf(life, stack.execute([stack.pay("one", shop, 1n)])))?.message).toBe(
        "refused by a decision hook: mine"
      )
      expect(decider.asked).toHaveLength(2)
    }))

  it("says how its receiver failed, and ends with its removal", () =>
    stack.living({}, async (life) => {
      await life.runPromise(Hook.set(stack.caller(), request()))
      decider.behave((response) => void response.writeHead(500).end())
      expect((await refusalOf(life, stack.execute([stack.pay("one", shop, 1n)])))?.message).toBe(
        "no decision: it answered 500"
      )
      await life.runPromise(Hook.remove(stack.caller()))
      const signing = SignMessages.run(stack.caller(), {
        messages: ["a login"],
        signer: stack.settings.signer
      })
      await expect.poll(() => refusalOf(life, signing), { timeout: 5_000 }).toBeNull()
    }))

  it("stops the account's writes when its setting cannot be read", () =>
    stack.living({}, async (life) => {
      const setting = {
        accountId: account,
        name: "decisionHook",
        content: "{}",
        at: 1,
        by: "key:1",
        requestId: null
      }
      await life.runPromise(Effect.flatMap(Settings, ({ put }) => put({ ...setting, name: "decisionHook" })))
      expect((await refusalOf(life, stack.execute([stack.pay("one", shop, 1n)])))?.code).toBe("unavailable")
    }))
})

describe("docs/decision-hook.md", () => {
  const file = `test/scenarios/policies/.receiver-${process.pid}.mjs`
  let child: ChildProcess | undefined
  afterAll(() => {
    child?.kill()
    rmSync(file, { force: true })
  })

  it("has a receiver that runs unchanged", async () => {
    const [, code = ""] = /```js\n([\s\S]*?)```/.exec(readFileSync("docs/decision-hook.md", "utf8")) ?? []
    writeFileSync(file, `${code}\nconsole.log("ready")`)
    const other = await Decider.start()
    other.stop()
    const { port } = new URL(other.url)
    const env = { DECISION_SECRET: Decider.secret, PORT: port, PATH: process.env.PATH }
    await new Promise<void>((resolve, reject) => {
      child = execFile(process.execPath, [file], { env }, (error) => error !== null && reject(error))
      child.stdout?.once("data", () => resolve())
    })
    await under(
      async (life) => {
        const pay = (to: string) => stack.pay("one", to, 1n)
        const answer = await life.runPromise(stack.execute([pay(`0x${"22".repeat(20)}`), pay(shop)]))
        expect(errorsOf(answer)).toEqual([null, "refused by a decision hook: no supplier of ours"])
      },
      { url: Redacted.make(other.url) }
    )
  })
})
