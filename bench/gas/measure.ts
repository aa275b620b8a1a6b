import type { Chain } from "../../test/support/suite/Chain.js"
import { handleOps, newOp, nonceOf, type Op } from "../../test/support/suite/Ops.js"
import type { Account } from "./Account.js"

/** Gas of whole transactions. */
export interface Measured {
  readonly create: number
  readonly createEachOfFive: number
  readonly token: number
  readonly native: number
  readonly tokenEachOfTen: number
}

const gasOf = async (chain: Chain, account: Account, ops: ReadonlyArray<Op>): Promise<number> => {
  const { outcomes, receipt } = await handleOps(chain, account.version, ops)
  if (outcomes.length !== ops.length || outcomes.some((outcome) => !outcome.success))
    throw new Error(`${account.name}: an operation failed`)
  return Number(receipt.gasUsed)
}

const fundedCreation = async (chain: Chain, account: Account, number: number): Promise<Op> => {
  const op = await account.creation(number)
  await chain.fund(op.sender)
  return op
}

/** Deposits at the EntryPoint and mints tokens. */
const endow = async (chain: Chain, account: Account, address: string): Promise<void> => {
  const from = chain.stranger
  await chain
    .entryPoint(account.version)
    .connect(from)
    .getFunction("depositTo")
    .send(address, { value: 10n ** 18n })
  const mint = chain.token.connect(from).getFunction("mint")
  await mint.send(address, 10n ** 18n)
  await mint.send(from.address, 1n)
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i)

/**
 * Measures one account. The same EOA submits and is the beneficiary, with a balance. Ops come from an account with a
 * deposit, on a used nonce key, to a recipient that already holds the token.
 */
export const measure = async (chain: Chain, account: Account): Promise<Measured> => {
  const first = await fundedCreation(chain, account, 0)
  const create = await gasOf(chain, account, [first])
  const five = await Promise.all(range(5).map((i) => fundedCreation(chain, account, i + 1)))
  const createEachOfFive = Math.ceil((await gasOf(chain, account, five)) / 5)
  await endow(chain, account, first.sender)

  const send = async (...calls: ReadonlyArray<string>): Promise<number> => {
    const nonce = await nonceOf(chain, account.version, first.sender, 0n, 0n)
    const ops = calls.map((callData, i) => newOp(first.sender, { nonce: nonce + BigInt(i), callData }))
    return gasOf(chain, account, await Promise.all(ops.map(account.sign)))
  }
  const transfer = account.execute(
    await chain.token.getAddress(),
    chain.token.interface.encodeFunctionData("transfer", [chain.stranger.address, 1n]),
    0n
  )
  await send(transfer)
  return {
    create,
    createEachOfFive,
    token: await send(transfer),
    native: await send(account.execute(chain.stranger.address, "0x", 1n)),
    tokenEachOfTen: Math.ceil((await send(...range(10).map(() => transfer))) / 10)
  }
}
