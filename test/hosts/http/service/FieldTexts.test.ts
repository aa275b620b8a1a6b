import * as HttpApi from "effect/http-api/HttpApi"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { expect, it } from "vitest"
import { api } from "../../../../src/hosts/http/contract/Api.js"
import * as OpenApi from "../../../../src/hosts/http/docs/OpenApi.js"
import * as Decode from "../../../../src/hosts/http/service/Decode.js"
import { document, type JsonSchema } from "../../../../tools/reference/OpenApiDocument.js"

type Path = ReadonlyArray<string | number>

/** Every path of a request, with arrays represented by their first element. */
const places = (schema: JsonSchema, at: Path = []): ReadonlyArray<Path> => {
  const named = schema.$ref?.split("/").at(-1)
  if (named !== undefined) return places(document.components.schemas[named] ?? {}, at)
  const members = Object.entries(schema.properties ?? {})
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  return [
    at,
    ...members.flatMap(([name, member]) => places(member, [...at, name])),
    ...(schema.items === undefined ? [] : places(schema.items, [...at, 0])),
    ...choices.flatMap((choice) => places(choice, at).slice(1))
  ]
}

const name = (at: Path): string =>
  at.reduce<string>(
    (path, step) => (typeof step === "number" ? `${path}[]` : path === "" ? step : `${path}.${step}`),
    ""
  )

/** A request with only a value at a path. */
const holding = ([step, ...rest]: Path, value: unknown): unknown => {
  if (step === undefined) return value
  return typeof step === "number" ? [holding(rest, value)] : { [step]: holding(rest, value) }
}

/** Code and text of the fault at the path itself; empty if the value is valid there. */
const told = (decode: ReturnType<typeof Decode.decoder>, at: Path, value: unknown): string =>
  Result.match(decode(holding(at, value)), {
    onSuccess: () => "",
    onFailure: ({ code, details }) => {
      const path = name(at).replaceAll("[]", "[0]")
      const message = details.find((detail) => detail.path === path)?.message
      return message === undefined ? "" : `${code === "invalid_request" ? "" : `${code}: `}${message}`
    }
  })

const values = [null, 7, 1.5, "x"]

/** The expected messages for these values, and their paths; with the endpoint if another endpoint's message differs. */
interface Row {
  readonly told: ReadonlyArray<string>
  readonly places: ReadonlyArray<string>
}

const table: ReadonlyArray<Row> = [
  {
    told: ["", "", "", ""],
    places: [
      "errorABI.gas",
      "errorABI.inputs[].gas",
      "errorABI.inputs[].signature",
      "errorABI.inputs[].unit",
      "errorABI.signature",
      "errorABI.unit",
      "eventABI.gas",
      "eventABI.inputs[].gas",
      "eventABI.inputs[].signature",
      "eventABI.inputs[].unit",
      "eventABI.signature",
      "eventABI.unit"
    ]
  },
  {
    told: ["expected HH:MM, UTC", "expected HH:MM, UTC", "expected HH:MM, UTC", "expected HH:MM, UTC"],
    places: ["rules[].match.hours.from", "rules[].match.hours.to"]
  },
  {
    told: [
      "expected Unix seconds and no milliseconds: an integer from 0 to 7289654399 (the end of the year 2200), got null",
      "",
      "expected Unix seconds and no milliseconds: an integer from 0 to 7289654399 (the end of the year 2200), got 1.5",
      'expected Unix seconds and no milliseconds: an integer from 0 to 7289654399 (the end of the year 2200), got the text "x"'
    ],
    places: [
      "operations[].validAfter",
      "operations[].validUnitl",
      "operations[].validationData.validAfter",
      "operations[].validationData.validUnitl"
    ]
  },
  {
    told: [
      "expected Unix seconds",
      "expected Unix seconds",
      "expected Unix seconds",
      "expected Unix seconds"
    ],
    places: ["since", "until"]
  },
  {
    told: [
      'expected "/execute" or "/executeEncoded" or "/executePasskey" or "/transactSigner" or "/create" or "/sign" or "/signMessage" or "/topUp", got null',
      'expected "/execute" or "/executeEncoded" or "/executePasskey" or "/transactSigner" or "/create" or "/sign" or "/signMessage" or "/topUp", got a number',
      'expected "/execute" or "/executeEncoded" or "/executePasskey" or "/transactSigner" or "/create" or "/sign" or "/signMessage" or "/topUp", got a number',
      'expected "/execute" or "/executeEncoded" or "/executePasskey" or "/transactSigner" or "/create" or "/sign" or "/signMessage" or "/topUp", got "x"'
    ],
    places: ["rules[].match.endpoints[]"]
  },
  {
    told: [
      'expected "accepted" or "scheduled" or "signed" or "submitted" or "replaced" or "included" or "reopened" or "settled" or "final" or "cancelled" or "expired", got null',
      'expected "accepted" or "scheduled" or "signed" or "submitted" or "replaced" or "included" or "reopened" or "settled" or "final" or "cancelled" or "expired", got a number',
      'expected "accepted" or "scheduled" or "signed" or "submitted" or "replaced" or "included" or "reopened" or "settled" or "final" or "cancelled" or "expired", got a number',
      'expected "accepted" or "scheduled" or "signed" or "submitted" or "replaced" or "included" or "reopened" or "settled" or "final" or "cancelled" or "expired", got "x"'
    ],
    places: ["kinds[]"]
  },
  {
    told: [
      'expected "all", "sponsored" or "payments"',
      'expected "all", "sponsored" or "payments"',
      'expected "all", "sponsored" or "payments"',
      'expected "all", "sponsored" or "payments"'
    ],
    places: ["on"]
  },
  {
    told: [
      'expected "allow" or "refuse", got null',
      'expected "allow" or "refuse", got a number',
      'expected "allow" or "refuse", got a number',
      'expected "allow" or "refuse", got "x"'
    ],
    places: ["rules[].effect"]
  },
  {
    told: [
      'expected "count" or "ignore", got null',
      'expected "count" or "ignore", got a number',
      'expected "count" or "ignore", got a number',
      'expected "count" or "ignore", got "x"'
    ],
    places: ["limits[].approvals"]
  },
  {
    told: [
      'expected "enabled" or "paused", got null',
      'expected "enabled" or "paused", got a number',
      'expected "enabled" or "paused", got a number',
      'expected "enabled" or "paused", got "x"'
    ],
    places: ["changeWatch state", "changeWebhook state"]
  },
  {
    told: [
      'expected "enforce" or "observe", got null',
      'expected "enforce" or "observe", got a number',
      'expected "enforce" or "observe", got a number',
      'expected "enforce" or "observe", got "x"'
    ],
    places: ["mode"]
  },
  {
    told: [
      'expected "error", got null',
      'expected "error", got a number',
      'expected "error", got a number',
      'expected "error", got "x"'
    ],
    places: ["errorABI.type"]
  },
  {
    told: [
      'expected "event", got null',
      'expected "event", got a number',
      'expected "event", got a number',
      'expected "event", got "x"'
    ],
    places: ["eventABI.type"]
  },
  {
    told: [
      'expected "native" or "erc20.transfer" or "erc20.approve" or "erc721.transfer" or "erc1155.transfer" or "approvalForAll" or "wallet.admin" or "deploy" or "call" or "sign.hash" or "sign.message" or "sign.typedData", got null',
      'expected "native" or "erc20.transfer" or "erc20.approve" or "erc721.transfer" or "erc1155.transfer" or "approvalForAll" or "wallet.admin" or "deploy" or "call" or "sign.hash" or "sign.message" or "sign.typedData", got a number',
      'expected "native" or "erc20.transfer" or "erc20.approve" or "erc721.transfer" or "erc1155.transfer" or "approvalForAll" or "wallet.admin" or "deploy" or "call" or "sign.hash" or "sign.message" or "sign.typedData", got a number',
      'expected "native" or "erc20.transfer" or "erc20.approve" or "erc721.transfer" or "erc1155.transfer" or "approvalForAll" or "wallet.admin" or "deploy" or "call" or "sign.hash" or "sign.message" or "sign.typedData", got "x"'
    ],
    places: ["rules[].match.kinds[]"]
  },
  {
    told: [
      'expected "op" or "request" or "day" or "24h" or "30d", got null',
      'expected "op" or "request" or "day" or "24h" or "30d", got a number',
      'expected "op" or "request" or "day" or "24h" or "30d", got a number',
      'expected "op" or "request" or "day" or "24h" or "30d", got "x"'
    ],
    places: ["limits[].per"]
  },
  {
    told: [
      'expected "pending" or "final", got null',
      'expected "pending" or "final", got a number',
      'expected "pending" or "final", got a number',
      'expected "pending" or "final", got "x"'
    ],
    places: ["listRequests? state"]
  },
  {
    told: ['expected "refuse"', 'expected "refuse"', 'expected "refuse"', 'expected "refuse"'],
    places: ["onFailure"]
  },
  {
    told: [
      'expected "rsv" or "hex" or "compact" or "der", got null',
      'expected "rsv" or "hex" or "compact" or "der", got a number',
      'expected "rsv" or "hex" or "compact" or "der", got a number',
      'expected "rsv" or "hex" or "compact" or "der", got "x"'
    ],
    places: ["format"]
  },
  {
    told: [
      "expected a URL of at most 2048 characters",
      "expected a URL of at most 2048 characters",
      "expected a URL of at most 2048 characters",
      ""
    ],
    places: ["url"]
  },
  {
    told: [
      "expected a chain id, a decimal string",
      "expected a chain id, a decimal string",
      "expected a chain id, a decimal string",
      "expected a chain id, a decimal string"
    ],
    places: ["limits[].chain", "rules[].match.chains[]", "rules[].match.domains[].chainId"]
  },
  {
    told: [
      "expected a chain id: a positive integer, got null",
      "",
      "expected a chain id: a positive integer, got 1.5",
      'expected a chain id: a positive integer, got the text "x"'
    ],
    places: [
      "addWatch chainId",
      "filterEvent chainId",
      "getEvents chainId",
      "read chainId",
      "receipt chainId",
      "settings.chainId"
    ]
  },
  {
    told: [
      "expected a name of 1 to 64 letters, digits, dots, hyphens and underscores",
      "expected a name of 1 to 64 letters, digits, dots, hyphens and underscores",
      "expected a name of 1 to 64 letters, digits, dots, hyphens and underscores",
      ""
    ],
    places: ["limits[].name", "rules[].name"]
  },
  {
    told: ["expected a number, got null", "", "", "expected a number, got a string"],
    places: ["check accounts[].walletCustody"]
  },
  {
    told: [
      "expected a number, got null",
      "",
      "expected an integer, got 1.5",
      "expected a number, got a string"
    ],
    places: [
      "expiresAt",
      "operations[].dependsOn",
      "rules[].match.args[].index",
      "rules[].match.hours.days[]"
    ]
  },
  {
    told: [
      "expected a string or a number, got null",
      "",
      "",
      "expected a percentage from 0 to 1000 with at most four decimals"
    ],
    places: [
      "settings.percentTxGasOvershoot",
      "settings.percentTxGasPriceOvershoot",
      "settings.percentUserOpGasOvershoot"
    ]
  },
  {
    told: ["expected a string or an integer, got null", "", "expected a string or an integer, got 1.5", ""],
    places: ["getBundlerAddress chainId"]
  },
  {
    told: [
      "expected a string or an object, got null",
      "expected a string or an object, got a number",
      "expected a string or an object, got a number",
      ""
    ],
    places: ["account.signers[]", "accounts[].signers[]"]
  },
  {
    told: [
      "expected a string, got null",
      "expected a string, got a number",
      "expected a string, got a number",
      ""
    ],
    places: [
      "account.passkeyPubKey[]",
      "account.signers[].assetId",
      "account.signers[].clientId",
      "account.signers[].versionId",
      "account.threshold",
      "account.wallet",
      "accounts[].passkeyPubKey[]",
      "accounts[].signers[].assetId",
      "accounts[].signers[].clientId",
      "accounts[].signers[].versionId",
      "accounts[].threshold",
      "accounts[].wallet",
      "check accounts[].salt",
      "cursor",
      "errorABI.inputs[].internalType",
      "errorABI.inputs[].name",
      "errorABI.inputs[].type",
      "errorABI.name",
      "eventABI.inputs[].internalType",
      "eventABI.inputs[].name",
      "eventABI.inputs[].type",
      "eventABI.name",
      "eventDef",
      "eventName",
      "fromBlock",
      "getTopUp/ chainId",
      "message",
      "messages[]",
      "operations[].validationData.authenticatorData",
      "operations[].validationData.clientDataJSON",
      "operations[].validationData.signature",
      "operations[].wallet",
      "proofs[].validationData.authenticatorData",
      "proofs[].validationData.clientDataJSON",
      "proofs[].validationData.signature",
      "reads[].from",
      "reads[].funcSignature",
      "reads[].returnSignature",
      "reads[].to",
      "requestId",
      "rules[].match.args[].in[]",
      "rules[].match.domains[].name",
      "rules[].match.primaryTypes[]",
      "rules[].match.selectors[]",
      "setTopUp/ chainId",
      "settings.beaconAdminCreationCode",
      "settings.cosigners[].assetId",
      "settings.cosigners[].clientId",
      "settings.cosigners[].versionId",
      "settings.signer.assetId",
      "settings.signer.clientId",
      "settings.signer.versionId",
      "signMessage wallet",
      "signer.assetId",
      "signer.clientId",
      "signer.versionId",
      "subject",
      "targets[].to.assetId",
      "targets[].to.clientId",
      "targets[].to.versionId",
      "toBlock",
      "watchId",
      "webhookId"
    ]
  },
  {
    told: [
      "expected a string, got null",
      "expected a string, got a number",
      "expected a string, got a number",
      "expected 0x and an even number of hex digits"
    ],
    places: ["operations[].encodedUserOp", "operations[].signature", "proofs[].signature"]
  },
  {
    told: [
      "expected a string, got null",
      "expected a string, got a number",
      "expected a string, got a number",
      "expected 32 bytes: 0x and 64 hex digits"
    ],
    places: ["operations[].userOpHash", "txHashes[]"]
  },
  {
    told: [
      "expected a string, got null",
      "expected a string, got a number",
      "expected a string, got a number",
      'expected a non-negative integer as a decimal or 0x-hex string, got "x"'
    ],
    places: [
      "dailyCap",
      "eip712.chainId",
      "keep",
      "limits[].max",
      "operations[].value",
      "rules[].match.args[].max",
      "rules[].match.maxAmount",
      "targets[].below",
      "targets[].dailyCap",
      "targets[].upTo",
      "value"
    ]
  },
  {
    told: [
      "expected a string, got null",
      "expected a string, got a number",
      "expected a string, got a number",
      "expected an address: 0x and 40 hex digits"
    ],
    places: [
      "addresses[]",
      "contracts[]",
      "eip712.address",
      "listRequests? wallet",
      "operations[].to",
      "paymasters[]",
      "rules[].match.contracts[]",
      "rules[].match.domains[].verifyingContract",
      "rules[].match.tokens[]",
      "settings.aggregator",
      "settings.beaconAdminAddress",
      "settings.entryPoint",
      "settings.factory",
      "settings.paymaster",
      "settings.validator",
      "to"
    ]
  },
  {
    told: [
      "expected a version, a decimal number",
      "expected a version, a decimal number",
      "expected a version, a decimal number",
      "expected a version, a decimal number"
    ],
    places: ["version"]
  },
  {
    told: [
      "expected a whole number of blocks, 1 or more",
      "",
      "expected a whole number of blocks, 1 or more",
      "expected a whole number of blocks, 1 or more"
    ],
    places: ["confirmations"]
  },
  {
    told: [
      "expected a whole number of hours, 0 to 720",
      "",
      "expected a whole number of hours, 0 to 720",
      "expected a whole number of hours, 0 to 720"
    ],
    places: ["overlapHours"]
  },
  {
    told: [
      "expected a whole number, 1 to 100",
      "expected a whole number, 1 to 100",
      "expected a whole number, 1 to 100",
      "expected a whole number, 1 to 100"
    ],
    places: ["limit"]
  },
  {
    told: [
      "expected an address, of mixed case with its EIP-55 checksum, or list: and the list's name",
      "expected an address, of mixed case with its EIP-55 checksum, or list: and the list's name",
      "expected an address, of mixed case with its EIP-55 checksum, or list: and the list's name",
      "expected an address, of mixed case with its EIP-55 checksum, or list: and the list's name"
    ],
    places: ["rules[].match.to[]"]
  },
  {
    told: [
      "expected an array, got null",
      "expected an array, got a number",
      "expected an array, got a number",
      "expected an array, got a string"
    ],
    places: [
      "account.passkeyPubKey",
      "account.signers",
      "accounts",
      "accounts[].passkeyPubKey",
      "accounts[].signers",
      "addresses",
      "contracts",
      "errorABI.inputs",
      "errorABI.inputs[].components",
      "eventABI.inputs",
      "eventABI.inputs[].components",
      "funcParams",
      "kinds",
      "limits",
      "messages",
      "operations",
      "operations[].funcParams",
      "paymasters",
      "proofs",
      "reads",
      "reads[].funcParams",
      "rules",
      "rules[].match.args",
      "rules[].match.args[].in",
      "rules[].match.chains",
      "rules[].match.contracts",
      "rules[].match.domains",
      "rules[].match.endpoints",
      "rules[].match.hours.days",
      "rules[].match.kinds",
      "rules[].match.primaryTypes",
      "rules[].match.selectors",
      "rules[].match.to",
      "rules[].match.tokens",
      "settings.cosigners",
      "settings.useABI",
      "targets",
      "txHashes",
      "useABI"
    ]
  },
  {
    told: [
      "expected an integer from 100 to 10000, got null",
      "expected an integer from 100 to 10000, got 7",
      "expected an integer from 100 to 10000, got 1.5",
      'expected an integer from 100 to 10000, got the text "x"'
    ],
    places: ["timeoutMillis"]
  },
  {
    told: [
      "expected an object of at most 4096 bytes and 4 levels",
      "expected an object of at most 4096 bytes and 4 levels",
      "expected an object of at most 4096 bytes and 4 levels",
      "expected an object of at most 4096 bytes and 4 levels"
    ],
    places: ["settings.paymasterContext"]
  },
  {
    told: [
      "expected an object, got null",
      "expected an object, got a number",
      "expected an object, got a number",
      "expected an object, got a string"
    ],
    places: [
      "account",
      "accounts[]",
      "eip712",
      "errorABI",
      "errorABI.inputs[]",
      "eventABI",
      "eventABI.inputs[]",
      "fields",
      "limits[]",
      "operations[]",
      "operations[].validationData",
      "proofs[]",
      "proofs[].validationData",
      "reads[]",
      "rules[]",
      "rules[].match",
      "rules[].match.args[]",
      "rules[].match.domains[]",
      "rules[].match.hours",
      "settings",
      "settings.cosigners[]",
      "settings.signer",
      "signer",
      "targets[]",
      "targets[].to",
      "typedData"
    ]
  },
  {
    told: [
      "expected key:value, as in the header Request-Metadata",
      "expected key:value, as in the header Request-Metadata",
      "expected key:value, as in the header Request-Metadata",
      "expected key:value, as in the header Request-Metadata"
    ],
    places: ["metadata"]
  },
  {
    told: [
      "expected native, fees, ops, calls or the address of a token",
      "expected native, fees, ops, calls or the address of a token",
      "expected native, fees, ops, calls or the address of a token",
      "expected native, fees, ops, calls or the address of a token"
    ],
    places: ["limits[].asset"]
  },
  {
    told: [
      "expected the id of an event",
      "expected the id of an event",
      "expected the id of an event",
      "expected the id of an event"
    ],
    places: ["after"]
  },
  {
    told: [
      "expected true or false, got null",
      "expected true or false, got a number",
      "expected true or false, got a number",
      "expected true or false, got a string"
    ],
    places: [
      "account.legacyWallet",
      "accounts[].legacyWallet",
      "allowOperationHash",
      "dryRun",
      "eventABI.anonymous",
      "eventABI.inputs[].indexed",
      "fillUnknown",
      "hashed",
      "preview",
      "targets[].to.legacyWallet"
    ]
  },
  {
    told: [
      "expected whole seconds, 0 to 60",
      "expected whole seconds, 0 to 60",
      "expected whole seconds, 0 to 60",
      "expected whole seconds, 0 to 60"
    ],
    places: ["wait"]
  },
  {
    told: [
      "invalid_function_signature: expected a string, got null",
      "invalid_function_signature: expected a string, got a number",
      "invalid_function_signature: expected a string, got a number",
      ""
    ],
    places: ["funcSignature", "operations[].funcSignature"]
  },
  {
    told: [
      "invalid_rpc: expected a string, got null",
      "invalid_rpc: expected a string, got a number",
      "invalid_rpc: expected a string, got a number",
      ""
    ],
    places: ["rpc", "settings.rpc"]
  },
  {
    told: [
      "invalid_salt_format: expected a string, got null",
      "invalid_salt_format: expected a string, got a number",
      "invalid_salt_format: expected a string, got a number",
      ""
    ],
    places: [
      "account.salt",
      "create accounts[].salt",
      "operations[].salt",
      "predict accounts[].salt",
      "salt",
      "targets[].to.salt"
    ]
  },
  {
    told: [
      "invalid_wallet_custody_type: expected an integer from 0 to 5, got null",
      "invalid_wallet_custody_type: expected an integer from 0 to 5, got 7",
      "invalid_wallet_custody_type: expected an integer from 0 to 5, got 1.5",
      'invalid_wallet_custody_type: expected an integer from 0 to 5, got the text "x"'
    ],
    places: [
      "account.walletCustody",
      "create accounts[].walletCustody",
      "operations[].walletCustody",
      "walletCustody"
    ]
  },
  {
    told: [
      "invalid_wallet_custody_type: expected an integer from 1 to 5, got null",
      "invalid_wallet_custody_type: expected an integer from 1 to 5, got 7",
      "invalid_wallet_custody_type: expected an integer from 1 to 5, got 1.5",
      'invalid_wallet_custody_type: expected an integer from 1 to 5, got the text "x"'
    ],
    places: ["predict accounts[].walletCustody", "targets[].to.walletCustody"]
  }
]

const found = (): ReadonlyArray<Row> => {
  const byPlace = new Map<string, Map<string, string>>()
  const add = (endpoint: string, schema: Schema.Top | undefined, shape: JsonSchema): void => {
    if (schema === undefined) return
    const decode = Decode.decoder(schema as Schema.Codec<unknown, unknown>)
    for (const at of places(shape).slice(1)) {
      const place = name(at)
      const all = JSON.stringify(values.map((value) => told(decode, at, value)))
      byPlace.set(place, (byPlace.get(place) ?? new Map()).set(endpoint, all))
    }
  }
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      // Its request is one of another endpoint.
      if (endpoint.identifier === "evaluatePolicies") return
      const [payload] = endpoint.payload.values()
      const operation = document.paths[OpenApi.templateOf(endpoint.path)]?.[endpoint.method.toLowerCase()]
      const parameters = operation?.parameters ?? []
      const of = (place: string): JsonSchema => ({
        properties: Object.fromEntries(
          parameters.flatMap((one) => ("in" in one && one.in === place ? [[one.name, one.schema]] : []))
        )
      })
      const body = operation?.requestBody?.content["application/json"]?.schema ?? {}
      add(endpoint.identifier, payload?.schemas[0], body)
      add(`${endpoint.identifier}?`, endpoint.query, of("query"))
      add(`${endpoint.identifier}/`, endpoint.params, of("path"))
    }
  })
  const groups: Record<string, Array<string>> = {}
  for (const [place, tellings] of byPlace) {
    const isOne = new Set(tellings.values()).size === 1
    for (const [endpoint, text] of isOne ? [...tellings].slice(0, 1) : tellings)
      groups[text] = [...(groups[text] ?? []), isOne ? place : `${endpoint} ${place}`]
  }
  return Object.entries(groups).map(([text, all]) => ({ told: JSON.parse(text), places: all.toSorted() }))
}

const byText = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> =>
  rows.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))

it("every field has its own error code and text", () => {
  expect(byText(found())).toEqual(byText(table))
})
