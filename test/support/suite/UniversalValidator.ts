import { readFileSync } from "node:fs"
import { AbiCoder, concat, type JsonRpcProvider } from "ethers"

const { creationCode } = JSON.parse(
  readFileSync(new URL("./universalValidator.json", import.meta.url), "utf8")
) as { readonly creationCode: string }

/** Whether viem's verifyHash finds the signature valid: its ERC-6492 validator in one `eth_call`, which deploys nothing. */
export const isValid = async (
  provider: JsonRpcProvider,
  signer: string,
  hash: string,
  signature: string
): Promise<boolean> => {
  const given = AbiCoder.defaultAbiCoder().encode(["address", "bytes32", "bytes"], [signer, hash, signature])
  const answer: string = await provider
    .send("eth_call", [{ data: concat([creationCode, given]) }, "latest"])
    .catch(() => "0x00")
  return answer === "0x01"
}
