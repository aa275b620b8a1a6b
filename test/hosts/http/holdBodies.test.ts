import { beforeAll, describe, expect, it } from "vitest"
import * as Address from "../../../src/domain/primitives/Address.js"
import { endpoints, exampleOf } from "../../support/http/Contract.js"
import { place } from "../../support/http/MemoryService.js"
import { use } from "../../support/Use.js"
import * as Holding from "./Holding.js"
import { most } from "./Holding.js"

const MiB = 2 ** 20

const holding = use(Holding.start)
beforeAll(async () => {
  holding.says(() => Buffer.from("[]"))
})

/** Distinct mixed-case addresses, computed once. */
const addresses = Array.from({ length: 22_000 }, (_, index) =>
  Address.unsafe(`0x${Holding.addressOf(index)}`)
)
const times = <A>(count: number, one: (index: number) => A) =>
  Array.from({ length: count }, (_, index) => one(index))
const some = (count: number, from = 0) => times(count, (index) => addresses[(from + index) % 22_000])
const word = `0x${"ab".repeat(32)}`

const { rpc, signer } = place
const entryPoint = "0x0000000071727De22E5E9d8BAf0edAc6f37da032"
const submission = { rpc, entryPoint, signer }
const signers = { salt: "s", walletCustody: 3, threshold: "1" }
const listed = {
  accounts: times(256, (index) => ({ salt: `${"é".repeat(126)}${index}`, walletCustody: 1 })),
  settings: {
    ...submission,
    factory: place.factory,
    beaconAdminAddress: place.beacon,
    beaconAdminCreationCode: place.creationCode
  }
}
const operation = { walletCustody: 1, to: addresses[0], funcSignature: "f()" }
const calling = (funcSignature: string, funcParam: unknown) => ({
  to: addresses[0],
  funcSignature,
  funcParams: [typeof funcParam === "string" ? funcParam : JSON.stringify(funcParam)]
})
const query = (rest: object) => ({ rpc: holding.rpc, eventName: "Transfer", ...rest })
const fields = <A>(names: ReadonlyArray<string>, value: (index: number) => A) => ({
  fields: Object.fromEntries(names.map((name, index) => [name, value(index)]))
})
const numbered = (count: number, name: string) => times(count, (index) => `${name}${index}`)
const lists = ["a", "b", "c"]
const assertion = {
  encodedUserOp: `0x${"ab".repeat(700)}`,
  userOpHash: word,
  validationData: {
    signature: "A".repeat(400),
    authenticatorData: "A".repeat(800),
    clientDataJSON: "A".repeat(800)
  }
}

const bodies: ReadonlyArray<readonly [path: string, what: string, body: () => object]> = [
  [
    "/create",
    "22,000 signers",
    () => ({ accounts: [{ ...signers, signers: addresses }], settings: submission })
  ],
  [
    "/create",
    "256 accounts of 16 signers",
    () => ({
      accounts: times(256, (index) => ({ ...signers, salt: `s${index}`, signers: some(16, 16 * index) })),
      settings: submission
    })
  ],
  ["/predict", "256 accounts", () => listed],
  ["/check", "256 accounts", () => ({ ...listed, settings: { rpc } })],
  ["/filterEvent", "22,000 contracts", () => query({ contracts: addresses })],
  ["/filterEvent", "30,000 fields", () => query(fields(numbered(30_000, "field"), () => "1"))],
  ["/getEvents", "22,000 values of a field", () => query({ fields: { to: addresses } })],
  [
    "/getEvents",
    "80 fields of 256 addresses",
    () =>
      query({
        eventName: "Wide",
        useABI: [`event Wide(${numbered(80, "address a").join(",")})`],
        ...fields(numbered(80, "a"), (index) => some(256, 256 * index))
      })
  ],
  [
    "/getEvents",
    "three fields of 256 lists",
    () =>
      query({
        eventName: "Lists",
        useABI: [`event Lists(${lists.map((name) => `uint256[] indexed ${name}`).join(", ")})`],
        ...fields(lists, () => times(256, () => JSON.stringify(times(600, () => 1))))
      })
  ],
  [
    "/getEvents",
    "a field of 1,000,000 characters",
    () =>
      query({
        eventName: "Text",
        useABI: ["event Text(string indexed text)"],
        fields: { text: "x".repeat(1_000_000) }
      })
  ],
  [
    "/execute",
    "256 operations of 60 addresses",
    () => ({
      operations: times(256, () => ({
        ...operation,
        salt: "customer-1",
        ...calling("f(address[])", some(60))
      })),
      settings: submission
    })
  ],
  [
    "/execute",
    "7,000 operations",
    () => ({ operations: times(7_000, () => operation), settings: submission })
  ],
  [
    "/executeEncoded",
    "an op of 1,000,000 digits",
    () => ({
      operations: [{ encodedUserOp: `0x${"ab".repeat(500_000)}`, userOpHash: word, walletCustody: 1 }],
      settings: submission
    })
  ],
  [
    "/executePasskey",
    "256 operations of 3,000 characters",
    () => ({ operations: times(256, () => assertion), settings: { rpc, entryPoint } })
  ],
  [
    "/read",
    "256 reads of 60 addresses",
    () => ({
      rpc,
      reads: times(256, (index) => ({
        ...calling("f(address[])", some(60, index)),
        to: addresses[index],
        returnSignature: "uint256"
      }))
    })
  ],
  [
    "/receipt",
    "256 transactions",
    () => ({ rpc, txHashes: times(256, (index) => `0x${Holding.hex(BigInt(index), 64)}`) })
  ],
  ["/sign", "256 messages", () => ({ messages: numbered(256, "message "), signer })],
  [
    "/transactSigner",
    "a list of 4,000 addresses",
    () => ({ ...calling("f(address[])", some(4_000)), settings: { rpc, signer } })
  ],
  [
    "/transactSigner",
    "a parameter of 1,000,000 digits",
    () => ({ ...calling("f(bytes)", `0x${"ab".repeat(500_000)}`), settings: { rpc, signer } })
  ]
]

describe("no body that fits its schema holds the event loop for more than 100 ms", () => {
  it.each(bodies)("%s with %s", { timeout: 120_000 }, async (path, _, body) => {
    const text = JSON.stringify(body())
    expect(text.length).toBeLessThan(MiB)
    const { answers, longest } = await holding.held(path, [text])
    expect(answers[0]?.status).not.toBe(500)
    expect(longest).toBeLessThan(most)
  })
})

describe("no body of an abandoned request holds the event loop for more than 100 ms", () => {
  const later = { prefer: "respond-async" }
  const names = (count: number, name: (index: number) => string) =>
    `{${times(count, (index) => `"${name(index)}":1`).join(",")}}`
  const digits = "ab".repeat(200)
  const long: ReadonlyArray<readonly [what: string, path: string, body: () => string]> = [
    [
      "10,000 operations",
      "/execute",
      () =>
        JSON.stringify({
          operations: times(10_000, (index) => ({
            ...operation,
            salt: `customer-${index}`,
            ...calling("f(address,bytes)", addresses[index]),
            funcParams: [addresses[index], `0x${digits}`]
          })),
          settings: submission
        })
    ],
    ["98,000 names", "/execute", () => names(98_000, (index) => `account${index}`)],
    ["98,000 names with escapes", "/execute", () => names(98_000, (index) => `\\u0061${index}`)],
    ["escapes without end", "/execute", () => `["${"\\n".repeat(4 * MiB - 2)}`],
    ["\\u escapes without end", "/execute", () => `["${"\\u0041".repeat(1_390_000)}`],
    [
      "98,000 values that are not operations",
      "/execute",
      () => `{"operations":[${times(4_800, () => `[${"123456789012,".repeat(18)}1]`).join(",")}]}`
    ]
  ]

  it.each(long)("%s", { timeout: 120_000 }, async (_, path, body) => {
    const text = body()
    expect(text.length).toBeGreaterThan(MiB)
    const { answers, longest } = await holding.held(path, [text], later)
    expect(answers[0]?.status).not.toBe(500)
    expect(longest).toBeLessThan(most)
  })
})

describe("no page and no look-up holds the event loop for more than 100 ms", () => {
  const gets = endpoints.filter(({ method }) => method === "GET").map(exampleOf)

  it.each([...new Set([...gets, "/docs", "/openapi.json", "/playground", "/health/live", "/health/ready"])])(
    "%s",
    async (path) => {
      const { answers, longest } = await holding.held(path, [null, null, null, null])
      expect(answers[0]?.status).not.toBe(500)
      expect(longest).toBeLessThan(most)
    }
  )
})
