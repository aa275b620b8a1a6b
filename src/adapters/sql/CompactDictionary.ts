/**
 * Texts that columns of hex and JSON are likely to have in common, those that nearly every one has last: zlib names what is
 * found here by its place. What was written with it is read with it: a text that changes needs another prefix in `Compact`.
 */

const word = (digits: string): string => digits.padStart(64, "0")
const entryPoint = "0x0000000071727De22E5E9d8BAf0edAc6f37da032"
const noAddress = "0x0000000000000000000000000000000000000000"

const log = (name: string, parameters: string, args: string, topic: string, data = ""): string =>
  `{"address":"${entryPoint}","logIndex":0,"eventName":"${name}","eventDef":"event ${name}(${parameters})",` +
  `"args":{${args}},"topics":["${topic}","0x000000000000000000000000"],"data":"0x${data}"},`

const body = [
  `{"operations":[{"accounts":[{"salt":"","walletCustody":1,"wallet":"0x","to":"0x","value":"0",`,
  `"funcSignature":"approve(address,uint256)","funcSignature":"transfer(address,uint256)",`,
  `"funcParams":["0x","1"]}],"settings":{"rpc":"https://","http://127.0.0.1:8545","signer":{"clientId":"",`,
  `"versionId":"1"},"assetId":"","factory":"0x","beaconAdminAddress":"0x","beaconAdminCreationCode":"0x`,
  `"chainId":1,"entryPoint":"0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108`,
  `"entryPoint":"0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789","entryPoint":"${entryPoint}"}}`
].join("")

/** `handleOps` with one op that calls `transfer`. */
const transaction = [
  "0x02f90493827a69843b9aca0084830a0c940000000071727de22e5e9d8baf0edac6f37da03280b90424765e827f",
  ...["40", "", "1", "20", "", "", "120", "140", "", "", "3b9aca00", "260", "280", "", "e4b61d27f6"].map(
    word
  ),
  ...["", "", "60", "44a9059cbb", "", "1", "", "", "80", "41"].map(word),
  "1b00000000000000000000000000000000000000000000000000000000000000c080a0",
  "1c00000000000000000000000000000000000000000000000000000000000000c001a0"
].join("")

const logs = [
  log(
    "BeaconUpgraded",
    "address indexed beacon",
    `"beacon":"0x"`,
    "0x1cf3b03a6cf19fa2baba4df148e9dcabedea7f8a5c07840e207e5c089be95d3e"
  ),
  log(
    "WalletCreated",
    "address indexed wallet, bytes32 indexed create2Salt, bytes32 configHash",
    `"wallet":"0x","create2Salt":"0x","configHash":"0x"`,
    "0x9424777841fec22e0fd5e9489a781ca67036fda5abc5b560e8276c49cfaa32d5"
  ),
  log(
    "AccountDeployed",
    "bytes32 indexed userOpHash, address indexed sender, address factory, address paymaster",
    `"userOpHash":"0x","sender":"0x","factory":"0x","paymaster":"${noAddress}"`,
    "0xd51a9c61267aa6196961883ecf5ff2da6619c37dac0fa92122513fb32c032d2d"
  ),
  log(
    "Approval",
    "address indexed owner, address indexed spender, uint256 value",
    `"owner":"0x","spender":"0x","value":"1"`,
    "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
  )
].join("")

const outcome = [
  `{"answer":{"status":1,"txHash":"0x","cumulativeGasUsed":100000,"gasUsed":100000,`,
  `"effectiveGasPrice":"1000000000","returnData":[{"0":{"userOpHash":"0x","success":true,"error":null,`,
  `"result":"0x${word("1")}","txHash":"0x"}}],"logs":[`,
  log(
    "Deposited",
    "address indexed account, uint256 totalDeposit",
    `"account":"0x","totalDeposit":"`,
    "0x2da466a7b24304f47e87fa2e1e5a81b9831ce54fec19055ce277ca2f39ba42c4",
    word("")
  ),
  log("BeforeExecution", "", "", "0xbb47ee3e183a558b1a2ff0874b079f3fc5478b7454eacf2bfc5af2ff5878f972"),
  log(
    "Transfer",
    "address indexed from, address indexed to, uint256 value",
    `"from":"0x","to":"0x","value":"1"`,
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
    word("1")
  ),
  log(
    "UserOperationEvent",
    "bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, " +
      "uint256 actualGasCost, uint256 actualGasUsed",
    `"userOpHash":"0x","sender":"0x","paymaster":"${noAddress}","nonce":"4","success":true,` +
      `"actualGasCost":"100000000000000","actualGasUsed":"100000"`,
    "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f",
    word("4") + word("1")
  ),
  `"0x${word("")}"],"data":"0x"}],"txHashes":["0x"]}}`
].join("")

const events = [
  `{"httpStatus":200,"status":1,"elements":[{"index":0,"success":true}]}`,
  `{"txHash":"0x","maxFeePerGas":"1000000000","maxPriorityFeePerGas":"1000000000","elements":[0]}`,
  `{"txHash":"0x","blockNumber":"1","success":true,"elements":[0]}`
].join("")

export const bytes: Buffer = Buffer.from([transaction, body, logs, outcome, events].join(""), "utf8")
