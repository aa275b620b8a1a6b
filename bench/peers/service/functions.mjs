import { createKeccak } from "hash-wasm"
import * as AbiEvent from "ox/AbiEvent"
import * as AbiFunction from "ox/AbiFunction"
import * as AbiParameters from "ox/AbiParameters"
import * as Address from "ox/Address"
import * as ContractAddress from "ox/ContractAddress"
import { UserOperation } from "ox/erc4337"
import * as Hash from "ox/Hash"
import * as OxHex from "ox/Hex"
import * as Secp256k1 from "ox/Secp256k1"
import * as Signature from "ox/Signature"
import { recover, signRecoverable } from "tiny-secp256k1"
import {
  decodeEventLog,
  encodeAbiParameters,
  encodeFunctionData,
  getContractAddress,
  keccak256,
  parseAbi,
  parseAbiItem,
  recoverAddress,
  stringToHex
} from "viem"
import { getUserOperationHash } from "viem/account-abstraction"
import { sign } from "viem/accounts"

/** The same tasks with viem and ox. Each takes the task's inputs and returns a function to call repeatedly. */

const transfer = "function transfer(address to, uint256 value) returns (bool)"
const transferred = "event Transfer(address indexed from, address indexed to, uint256 value)"
const saltParameters = [{ type: "bytes32" }, { type: "uint256" }]

export const viem = {
  keccak:
    ({ bytes }) =>
    () =>
      keccak256(bytes),
  predict:
    ({ factory, initCodeHash }) =>
    (salt) =>
      getContractAddress({
        opcode: "CREATE2",
        from: factory,
        bytecodeHash: initCodeHash,
        salt: keccak256(encodeAbiParameters(saltParameters, [keccak256(stringToHex(salt)), 1n]))
      }),
  opHash: ({ chainId, entryPoint, op, version }) => {
    const parameters = {
      chainId,
      entryPointAddress: entryPoint,
      entryPointVersion: version,
      userOperation: op
    }
    return () => getUserOperationHash(parameters)
  },
  encode: ({ params }) => {
    const abi = parseAbi([transfer])
    return () => encodeFunctionData({ abi, functionName: "transfer", args: [params[0], BigInt(params[1])] })
  },
  parseAndEncode:
    ({ params }) =>
    () =>
      encodeFunctionData({ abi: [parseAbiItem(transfer)], args: [params[0], BigInt(params[1])] }),
  decode: () => {
    const abi = parseAbi([transferred])
    return ({ data, topics }) => {
      const { args } = decodeEventLog({ abi, data, topics })
      return `${args.from} ${args.to} ${args.value}`
    }
  },
  sign:
    ({ digest, privateKey }) =>
    () =>
      sign({ hash: digest, privateKey, to: "hex" }),
  recover:
    ({ digest, signature }) =>
    () =>
      recoverAddress({ hash: digest, signature }),
  prove:
    ({ address, digest, signature }) =>
    async () =>
      (await recoverAddress({ hash: digest, signature })) === address
}

const oxOp = (op) => ({ ...op, signature: op.signature ?? "0x" })

export const ox = {
  keccak:
    ({ bytes }) =>
    () =>
      Hash.keccak256(bytes),
  predict:
    ({ factory, initCodeHash }) =>
    (salt) =>
      Address.checksum(
        ContractAddress.fromCreate2({
          from: factory,
          bytecodeHash: initCodeHash,
          salt: Hash.keccak256(
            AbiParameters.encode(saltParameters, [Hash.keccak256(OxHex.fromString(salt)), 1n])
          )
        })
      ),
  opHash: ({ chainId, entryPoint, op, version }) => {
    const options = { chainId, entryPointAddress: entryPoint, entryPointVersion: version }
    const given = oxOp(op)
    return () => UserOperation.hash(given, options)
  },
  encode: ({ params }) => {
    const abi = AbiFunction.from(transfer)
    return () => AbiFunction.encodeData(abi, [params[0], BigInt(params[1])])
  },
  parseAndEncode:
    ({ params }) =>
    () =>
      AbiFunction.encodeData(AbiFunction.from(transfer), [params[0], BigInt(params[1])]),
  decode: () => {
    const event = AbiEvent.from(transferred)
    return (log) => {
      const { from, to, value } = AbiEvent.decode(event, log)
      return `${Address.checksum(from)} ${Address.checksum(to)} ${value}`
    }
  },
  sign:
    ({ digest, privateKey }) =>
    () =>
      Signature.toHex(Secp256k1.sign({ payload: digest, privateKey })),
  recover:
    ({ digest, signature }) =>
    () =>
      Address.checksum(
        Secp256k1.recoverAddress({ payload: digest, signature: Signature.fromHex(signature) })
      ),
  prove: ({ digest, publicKey, signature }) => {
    const key = { prefix: 4, x: BigInt(`0x${publicKey.slice(2, 66)}`), y: BigInt(`0x${publicKey.slice(66)}`) }
    return () =>
      Secp256k1.verify({ payload: digest, publicKey: key, signature: Signature.fromHex(signature) })
  }
}

const keccak = await createKeccak(256)
const bytesOf = (hex) => Buffer.from(hex.slice(2), "hex")

/** hash-wasm and tiny-secp256k1, as the upper bound of WebAssembly, not a peer. */
export const wasm = {
  keccak:
    ({ bytes }) =>
    () =>
      `0x${keccak.init().update(bytesOf(bytes)).digest("hex")}`,
  sign: ({ digest, privateKey }) => {
    const key = bytesOf(privateKey)
    return () => {
      const { recoveryId, signature } = signRecoverable(bytesOf(digest), key)
      return `0x${Buffer.from(signature).toString("hex")}${(27 + recoveryId).toString(16)}`
    }
  },
  recover:
    ({ digest, signature }) =>
    () => {
      const given = bytesOf(signature)
      const point = recover(bytesOf(digest), given.subarray(0, 64), given[64] - 27, false)
      return Address.checksum(`0x${keccak.init().update(point.subarray(1)).digest("hex").slice(24)}`)
    }
}
