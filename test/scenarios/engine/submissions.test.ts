import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import { IsOn } from "../../../src/application/usecases/operations/Submissions.js"
import { errorsOf, type Stack, useStack } from "../../support/stack/Stack.js"

/** `/execute` by intake and by the worker of the lane, on lanes that other requests use as well. */

const salts = Array.from({ length: 8 }, (_, at) => `submissions ${at}`)
const stack = useStack({}, (stack) => stack.create(...salts))

const idOf = () => `0x${randomUUID().replaceAll("-", "").padEnd(64, "0")}`

const submit = (...[operations, more, by]: Parameters<Stack["execute"]>) =>
  Effect.provideService(stack.execute(operations, more, by), IsOn, true)

it("answers with the same as a request that is worked on alone", async () => {
  const [one, other] = await Promise.all(
    [submit, stack.execute].map(async (way, at) => {
      const answer = await stack.ask(way([stack.hit(`submissions ${at}`, idOf())]))
      return { ...answer, status: answer.status }
    })
  )
  expect(Object.keys(one ?? {})).toEqual(Object.keys(other ?? {}))
  expect(errorsOf(one ?? { returnData: [] })).toEqual([null])
  expect(one?.status).toBe(other?.status)
  expect(one?.logs.length).toBe(other?.logs.length)
})

it("brings requests of one moment into few transactions", async () => {
  const ids = Array.from({ length: 40 }, idOf)
  const before = await stack.nonce()
  const answers = await Promise.all(
    ids.map((id, at) => stack.ask(submit([stack.hit(`submissions ${at % 8}`, id)])))
  )
  expect(answers.map(errorsOf)).toEqual(ids.map(() => [null]))
  expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))
  expect((await stack.nonce()) - before).toBeLessThanOrEqual(3)
})

it("shares its lane with requests that are worked on one by one", async () => {
  const ids = Array.from({ length: 24 }, idOf)
  const answers = await Promise.all(
    ids.map((id, at) =>
      stack.ask((at % 2 === 0 ? submit : stack.execute)([stack.hit(`submissions ${at % 8}`, id)]))
    )
  )
  expect(answers.map(errorsOf)).toEqual(ids.map(() => [null]))
  expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))
})

it("goes on where others have used the nonce keys of its wallets since", async () => {
  const ids = Array.from({ length: 3 }, () => Array.from({ length: 16 }, idOf))
  for (const [round, own] of ids.entries()) {
    const way = round % 2 === 0 ? submit : stack.execute
    const answers = await Promise.all(
      own.map((id, at) => stack.ask(way([stack.hit(`submissions ${at % 8}`, id)])))
    )
    expect(answers.map(errorsOf)).toEqual(own.map(() => [null]))
  }
  expect(await stack.counts(...ids.flat())).toEqual(ids.flat().map(() => 1))
})
