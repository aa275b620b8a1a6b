import { randomUUID } from "node:crypto"
import { expect, it } from "vitest"
import { errorsOf, useStack } from "../../support/stack/Stack.js"

/** `/execute` by intake and by the worker of the lane. */

const salts = Array.from({ length: 8 }, (_, at) => `submissions ${at}`)
const stack = useStack({}, (stack) => stack.create(...salts))

const idOf = () => `0x${randomUUID().replaceAll("-", "").padEnd(64, "0")}`

it("brings requests of one moment into few transactions", async () => {
  const ids = Array.from({ length: 40 }, idOf)
  const before = await stack.nonce()
  const answers = await Promise.all(
    ids.map((id, at) => stack.ask(stack.execute([stack.hit(`submissions ${at % 8}`, id)])))
  )
  expect(answers.map(errorsOf)).toEqual(ids.map(() => [null]))
  expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))
  expect((await stack.nonce()) - before).toBeLessThanOrEqual(3)
})
