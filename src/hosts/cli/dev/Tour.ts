import { computeAddress } from "ethers"
import type { DevInfo } from "./DevStack.js"

/** A request of the tour, ready to paste into a POSIX shell after `preamble`. */
export interface Stop {
  readonly title: string
  readonly command: string
}

const json = (value: unknown): string => JSON.stringify(value)

/** A JSON text into which the shell inserts `$SETTINGS`. */
const withSettings = (body: Readonly<Record<string, unknown>>): string =>
  `'${json({ ...body, settings: "@" }).replace('"@"', `'"$SETTINGS"'`)}'`

/** A request without variables. */
export const request = (info: DevInfo, path: string, body: unknown): string =>
  `curl -s ${info.baseUrl}${path} -H 'X-API-Key: ${info.apiKeys.pro}' -H 'Content-Type: application/json' -d ${quoted(json(body))}`

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const post = (path: string, data: string): string =>
  `curl -s $BASE${path} -H "X-API-Key: $KEY" -H 'Content-Type: application/json' -d ${data}`

/** Reads standard input as JSON into `a` and prints an expression of it. */
const pick = (expression: string): string =>
  `node -e 'const a = JSON.parse(require("fs").readFileSync(0, "utf8")); console.log(${expression})'`

/** Shows a command's response and stores a part of it in a variable. */
const keeping = (variable: string, command: string, expression: string): string =>
  `ANSWER=$(${command}); echo "$ANSWER"; ${variable}=$(echo "$ANSWER" | ${pick(expression)})`

/** Sets the variables of the commands. `file` is the development stack's dev.json. */
export const preamble = (info: DevInfo, file: string): string =>
  [
    `BASE=${info.baseUrl} RPC=${info.rpc} KEY=${info.apiKeys.pro}`,
    `export SETTINGS=$(node -p 'JSON.stringify(require(process.argv[1]).settings)' ${quoted(file)})`
  ].join("\n")

/** One command per endpoint; earlier commands prepare later ones. */
export const stops = (info: DevInfo): ReadonlyArray<Stop> => {
  const account = { salt: "alice", walletCustody: 1 }
  const faucet = computeAddress(info.faucetPrivateKey)
  const mint = {
    ...account,
    to: info.token,
    funcSignature: "mint(address,uint256)",
    funcParams: [faucet, "1000"]
  }
  const bump = {
    ...account,
    to: info.reverter,
    funcSignature: "bump(bytes32)",
    funcParams: [`0x${"00".repeat(31)}01`]
  }
  return [
    {
      title: "predict a wallet's address from a salt",
      command: keeping("WALLET", post("/predict", withSettings({ accounts: [account] })), "a[0].wallet")
    },
    {
      title: "fund it: a development node gives balances away",
      command: `curl -s $RPC -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"hardhat_setBalance","params":["'$WALLET'","0xde0b6b3a7640000"]}'`
    },
    { title: "create it", command: post("/create", withSettings({ accounts: [account] })) },
    { title: "check that it exists", command: post("/check", withSettings({ accounts: [account] })) },
    {
      title: "execute: mint test tokens; keep the transaction's hash",
      command: keeping("TX", post("/execute", withSettings({ operations: [mint] })), "a.txHash")
    },
    {
      title: "estimate the gas of two operations",
      command: `ESTIMATE=$(${post("/estimateGas", withSettings({ operations: [mint, bump] }))}); echo "$ESTIMATE"`
    },
    {
      title: "execute the ops that the estimate has encoded",
      command: `echo "$ESTIMATE" | ${pick(
        "JSON.stringify({ operations: a.userOps.map(({ encodedUserOp, userOpHash }) => ({ encodedUserOp, userOpHash, walletCustody: 1 })), settings: JSON.parse(process.env.SETTINGS) })"
      )} | ${post("/executeEncoded", "@-")}`
    },
    {
      title: "receipt of the transaction, with decoded logs",
      command: post("/receipt", `'{"txHashes":["'$TX'"],"rpc":"'$RPC'"}'`)
    },
    { title: "the networks that this key may use", command: `curl -s $BASE/networks -H "X-API-Key: $KEY"` },
    { title: "who signs", command: post("/getSigner", `'${json({ signer: info.settings.signer })}'`) },
    {
      title: "the EOA that submits for the service",
      command: `curl -s $BASE/getbundleraddress -H "X-API-Key: $KEY"`
    }
  ]
}

/**
 * URL of the playground with all fields filled in. The values are in the fragment, which browsers never send. Uses
 * localhost: browsers create no passkeys for IP addresses.
 */
export const playground = ({ apiKeys, baseUrl, paymaster, settings, token }: DevInfo): string => {
  const { entryPoint, rpc, signer } = settings
  const values = { apiKey: apiKeys.pro, rpc, settings: { entryPoint, signer, paymaster }, token }
  const page = new URL("/playground", baseUrl)
  page.hostname = "localhost"
  page.hash = encodeURIComponent(JSON.stringify(values))
  return page.href
}
