import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Address from "../../../src/domain/primitives/Address.js"
import { endpoints, exampleOf } from "../../support/http/Contract.js"
import * as Holding from "../../support/http/Holding.js"
import { most } from "../../support/http/Holding.js"
import * as MemoryService from "../../support/http/MemoryService.js"

const MiB = 2 ** 20
const { place } = MemoryService

let holding: Holding.Holding
beforeAll(async () => {
  holding = await Holding.start()
  holding.says(() => Buffer.from("[]"))
})
afterAll(() => holding.stop())

/** Mixed-case addresses, all distinct; made once. */
const addresses = Array.from({ length: 22_000 }, (_, index) =>
  Address.unsafe(`0x${Holding.addressOf(index)}`)
)
const some = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => addresses[(from + i) % 22_000])
const times = (count: number, one: (index: number) => unknown) =>
  Array.from({ length: count }, (_, index) => one(index))

const entryPoint = "0x0000000071727De22E5E9d8BAf0edAc6f37da032"
const settings = {
  rpc: place.rpc,
  entryPoint,
  signer: place.signer,
  factory: place.factory,
  beaconAdminAddress: place.beacon,
  beaconAdminCreationCode: place.creationCode
}
const submission = { rpc: place.rpc, entryPoint, signer: place.signer }
const operation = { walletCustody: 1, to: addresses[0], funcSignature: "f()" }
const signers = { salt: "s", walletCustody: 3, threshold: "1" }
const call = {
  ...operation,
  salt: "customer-1",
  funcSignature: "f(address[])",
  funcParams: [JSON.stringify(some(60))]
}

const bodies: ReadonlyArray<readonly [path: string, what: string, body: () => unknown]> = [
  [
    "/create",
    "22,000 signers of one account",
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
  [
    "/predict",
    "256 accounts",
    () => ({
      accounts: times(256, (index) => ({ salt: `${"é".repeat(126)}${index}`, walletCustody: 1 })),
      settings
    })
  ],
  [
    "/check",
    "256 accounts",
    () => ({
      accounts: times(256, (index) => ({ salt: `${"é".repeat(126)}${index}`, walletCustody: 1 })),
      settings: { rpc: place.rpc }
    })
  ],
  [
    "/filterEvent",
    "22,000 contracts",
    () => ({ rpc: holding.rpc, eventName: "Transfer", contracts: addresses })
  ],
  [
    "/filterEvent",
    "30,000 fields",
    () => ({
      rpc: holding.rpc,
      eventName: "Transfer",
      fields: Object.fromEntries(times(30_000, (index) => [`field${index}`, "1"]) as Array<[string, string]>)
    })
  ],
  [
    "/getEvents",
    "22,000 values of a field",
    () => ({ rpc: holding.rpc, eventName: "Transfer", fields: { to: addresses } })
  ],
  [
    "/getEvents",
    "80 fields of 256 addresses",
    () => ({
      rpc: holding.rpc,
      eventName: "Wide",
      useABI: [`event Wide(${times(80, (index) => `address a${index}`).join(",")})`],
      fields: Object.fromEntries(
        times(80, (index) => [`a${index}`, some(256, 256 * index)]) as Array<[string, unknown]>
      )
    })
  ],
  [
    "/getEvents",
    "three fields of 256 lists",
    () => ({
      rpc: holding.rpc,
      eventName: "Lists",
      useABI: ["event Lists(uint256[] indexed a, uint256[] indexed b, uint256[] indexed c)"],
      fields: Object.fromEntries(
        ["a", "b", "c"].map((name) => [name, times(256, () => JSON.stringify(times(600, () => 1)))])
      )
    })
  ],
  [
    "/getEvents",
    "a field of 1,000,000 characters",
    () => ({
      rpc: holding.rpc,
      eventName: "Text",
      useABI: ["event Text(string indexed text)"],
      fields: { text: "x".repeat(1_000_000) }
    })
  ],
  [
    "/execute",
    "256 operations of 60 addresses",
    () => ({ operations: times(256, () => call), settings: submission })
  ],
  [
    "/execute",
    "7,000 operations",
    () => ({
      operations: times(7_000, (index) => ({ ...operation, to: addresses[index] })),
      settings: submission
    })
  ],
  [
    "/executeEncoded",
    "an op of 1,000,000 digits",
    () => ({
      operations: [
        { encodedUserOp: `0x${"ab".repeat(500_000)}`, userOpHash: `0x${"ab".repeat(32)}`, walletCustody: 1 }
      ],
      settings: submission
    })
  ],
  [
    "/executePasskey",
    "256 operations of 3,000 characters",
    () => ({
      operations: times(256, () => ({
        encodedUserOp: `0x${"ab".repeat(700)}`,
        userOpHash: `0x${"ab".repeat(32)}`,
        validationData: {
          signature: "A".repeat(400),
          authenticatorData: "A".repeat(800),
          clientDataJSON: "A".repeat(800)
        }
      })),
      settings: { rpc: place.rpc, entryPoint }
    })
  ],
  [
    "/read",
    "256 reads of 60 addresses",
    () => ({
      rpc: place.rpc,
      reads: times(256, (index) => ({
        to: addresses[index],
        funcSignature: "f(address[])",
        funcParams: [JSON.stringify(some(60, index))],
        returnSignature: "uint256"
      }))
    })
  ],
  [
    "/receipt",
    "256 transactions",
    () => ({ rpc: place.rpc, txHashes: times(256, (index) => `0x${Holding.hex(BigInt(index), 64)}`) })
  ],
  [
    "/sign",
    "256 messages",
    () => ({ messages: times(256, (index) => `message ${index}`), signer: place.signer })
  ],
  [
    "/transactSigner",
    "a list of 4,000 addresses",
    () => ({
      to: addresses[0],
      funcSignature: "f(address[])",
      funcParams: [JSON.stringify(some(4_000))],
      settings: { rpc: place.rpc, signer: place.signer }
    })
  ],
  [
    "/transactSigner",
    "a parameter of 1,000,000 digits",
    () => ({
      to: addresses[0],
      funcSignature: "f(bytes)",
      funcParams: [`0x${"ab".repeat(500_000)}`],
      settings: { rpc: place.rpc, signer: place.signer }
    })
  ]
]

describe("no body that fits its schema holds the event loop for more than 50 ms", () => {
  it.each(bodies)("%s with %s", { timeout: 120_000 }, async (path, _, body) => {
    const text = JSON.stringify(body())
    expect(text.length).toBeLessThan(MiB)
    const { answers, longest } = await holding.held(path, [text])
    expect(answers[0]?.status).not.toBe(500)
    expect(longest).toBeLessThan(most)
  })
})

describe("no page and no look-up holds the event loop for more than 50 ms", () => {
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
