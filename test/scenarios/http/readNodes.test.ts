import { AbiCoder, toBeHex } from "ethers"
import { beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as Address from "../../../src/domain/primitives/Address.js"
import { httpNode, json, secret } from "../../support/HostileNode.js"
import { anvilKey, type Envelope } from "../../support/http/DevService.js"
import { putReadCodes, type ReadCode } from "../../support/http/ReadCodes.js"
import { perFile } from "../../support/http/SharedService.js"
import {
  type Answer,
  type Fault,
  type Question,
  refusal,
  startFaultyNode
} from "../../support/stack/FaultyNode.js"
import { use } from "../../support/Use.js"

interface Element {
  readonly readIndex: number
  readonly results: ReadonlyArray<unknown>
  readonly errors: string | null
}

const service = perFile()
const node = use(() => startFaultyNode(service.info.rpc))
let at: Readonly<Record<ReadCode, string>>
/** The node's queried methods and block tags, `eth_call` of Multicall3's code as `multicall`. */
let asked: Array<string> = []
beforeAll(async () => {
  at = await putReadCodes(service.provider)
})
beforeEach(() => {
  asked = []
})

const isMulticall = ({ params: [call, , overrides] }: Question): boolean =>
  typeof call === "object" &&
  call !== null &&
  "to" in call &&
  call.to === Address.zero &&
  overrides !== undefined

const behave = (fault: Fault) =>
  node.behave((question, ask) => {
    if (question.method === "eth_call")
      asked.push(isMulticall(question) ? "multicall" : `call at ${question.params[1]}`)
    else asked.push(question.method)
    return fault(question, ask)
  })

let paths = 0
/** A URL unknown to the service: it remembers no facts of the chain behind it. */
const unmet = () => {
  paths += 1
  return `${node.url}/${paths}`
}

const height = () => ({ to: at.height, funcSignature: "number()", returnSignature: "uint256" })
const burn = () => ({ to: at.burner, funcSignature: "burn()", returnSignature: "uint256" })
const read = (reads: ReadonlyArray<object>, rpc = unmet()) =>
  service.ok<ReadonlyArray<Element>>("/read", { reads, rpc })

/** The one height in all the reads that report it. */
const oneHeight = (answers: ReadonlyArray<Element>): bigint => {
  const heights = new Set(
    answers.flatMap(({ errors, results }) => (errors === null ? [String(results[0])] : []))
  )
  expect([...heights].length).toBe(1)
  return BigInt([...heights].join())
}

const mining: Fault = async (_, ask) => {
  const answer = await ask()
  await service.provider.send("evm_mine", [])
  return answer
}

const withoutMulticall =
  (fault: Fault): Fault =>
  (question, ask) =>
    question.method === "eth_getCode" ? Promise.resolve({ result: "0x" }) : fault(question, ask)

describe("on a chain that mines all the time, all reads of a request see one block", () => {
  it("through Multicall3", async () => {
    behave(mining)
    oneHeight(await read([height(), height(), height()]))
    expect(asked).toEqual(["eth_chainId", "eth_getCode", "multicall"])
  })

  it("batched without Multicall3", async () => {
    behave(withoutMulticall(mining))
    const answers = await read(Array.from({ length: 50 }, height))
    const tag = `call at ${toBeHex(oneHeight(answers)).replace(/^0x0/, "0x")}`
    expect(new Set(asked.slice(3))).toEqual(new Set([tag]))
    expect(asked.slice(0, 3)).toEqual(["eth_chainId", "eth_getCode", "eth_getBlockByNumber"])
  })

  it("batched with a named sender", async () => {
    behave(mining)
    oneHeight(await read([height(), { ...height(), from: anvilKey(9).address }, height()]))
  })

  it("repeated behind a read that took all the gas", async () => {
    behave(mining)
    const answers = await read([height(), burn(), height(), burn(), height()])
    oneHeight(answers)
    expect(answers.map(({ errors }) => errors === null)).toEqual([true, false, true, false, true])
  })

  it("on a node without batches", async () => {
    const single = await httpNode((response, body) => {
      if (body.startsWith("["))
        return json(response, { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "no batches" } })
      const call: Question & { readonly id: number } = JSON.parse(body)
      const forward = async (): Promise<Answer> =>
        call.method === "eth_getCode"
          ? { result: "0x" }
          : { result: await service.provider.send(call.method, [...call.params]) }
      mining(call, forward).then((answer) => json(response, { jsonrpc: "2.0", id: call.id, ...answer }))
    })
    try {
      oneHeight(await read(Array.from({ length: 20 }, height), single.url))
    } finally {
      await single.close()
    }
  })

  it("on a node behind a balancer whose next backend lacks the block", async () => {
    let early = 12
    behave(
      withoutMulticall((question, ask) => {
        if (question.method !== "eth_call" || early === 0) return mining(question, ask)
        early -= 1
        return Promise.resolve(refusal(-32_000, "header not found"))
      })
    )
    // The code answers any call; equal reads would be sent once.
    const different = Array.from({ length: 8 }, (_, n) => ({ ...height(), funcSignature: `number${n}()` }))
    oneHeight(await read(different))
    expect(early).toBe(0)
  })
})

/** Reply of Multicall3 when three calls returned 7 and the later ones had no gas. */
const unpaid = AbiCoder.defaultAbiCoder().encode(
  ["(bool,bytes)[]"],
  [
    [
      ...Array.from({ length: 3 }, () => [true, toBeHex(7, 32)]),
      ...Array.from({ length: 20 }, () => [false, "0x"])
    ]
  ]
)

describe("a node that does not do the calls together", () => {
  const ways: ReadonlyArray<readonly [string, Answer]> = [
    ["for want of gas", refusal(-32_000, "out of gas")],
    ["as it reverts", { error: { code: 3, message: "execution reverted", data: "0x08c379a0" } }],
    ["as it takes no state overrides", refusal(-32_602, "too many arguments, want at most 2")],
    ["but says something else", { result: `0x${"20".padStart(64, "0").repeat(9)}` }],
    ["but has no gas left behind them", { result: unpaid }],
    ["but says of fewer calls", { result: `0x${"20".padStart(64, "0")}${"".padStart(64, "0")}` }]
  ]
  it.each(ways)("%s does them one by one", async (_, answer) => {
    behave((question, ask) => (isMulticall(question) ? Promise.resolve(answer) : ask()))
    const answers = await read([height(), burn(), height()])
    expect(oneHeight(answers)).toBe(BigInt(await service.provider.getBlockNumber()))
    expect(answers.map(({ errors }) => errors === null)).toEqual([true, false, true])
  })
})

describe("a node that refuses", () => {
  it("one read is quoted there, and nowhere else", async () => {
    behave(
      withoutMulticall(({ method, params: [call] }, ask) =>
        method === "eth_call" && JSON.stringify(call).toLowerCase().includes(at.burner)
          ? Promise.resolve(refusal(-32_000, `no more gas for ${secret} at https://node.example/${secret}`))
          : ask()
      )
    )
    const answers = await read([height(), burn(), height()])
    oneHeight(answers)
    expect(answers[1]?.results).toEqual([])
    expect(answers[1]?.errors).toMatch(/^http:\/\/127\.0\.0\.1:\d+ answered: no more gas for .* at \(URL\)$/)
  })

  it("is quoted in every read", async () => {
    behave((question, ask) =>
      question.method === "eth_call" ? Promise.resolve(refusal(-32_000, "not today")) : ask()
    )
    const answers = await read([height(), height()])
    for (const { errors, results } of answers) {
      expect(results).toEqual([])
      expect(errors).toMatch(/answered: not today$/)
    }
  })

  it("is not a node without a reply", async () => {
    behave((question, ask) => (question.method === "eth_call" ? Promise.resolve(null) : ask()))
    for (const reads of [[height()], [height(), height()]]) {
      const { body, status } = await service.ask<Envelope>("/read", { reads, rpc: unmet() })
      expect({ status, code: body.code, path: body.details[0]?.path }).toEqual({
        status: 400,
        code: "invalid_rpc",
        path: "rpc"
      })
    }
  })
})
