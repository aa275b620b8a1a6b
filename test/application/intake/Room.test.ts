import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { describe, expect, it } from "vitest"
import * as Room from "../../../src/application/intake/Room.js"

interface Member extends Room.Member {
  readonly id: number
}

const member = (id: number): Member => ({
  id,
  group: "a",
  account: "alice",
  lane: "the lane",
  ops: 1,
  bytes: 1
})

/** A room with this run, and the members that it failed. */
const opened = (
  run: (members: ReadonlyArray<Member>, room: () => Room.Room<Member>) => Effect.Effect<void, string>
) => {
  const failed: Array<number> = []
  const room: Room.Room<Member> = Room.make<Member, string>({
    fork: Effect.runFork,
    run: (members) => run(members, () => room),
    fail: ({ id }, exit) => {
      expect(Exit.isFailure(exit)).toBe(true)
      failed.push(id)
    }
  })
  return { failed, room }
}

describe("a run that fails", () => {
  it("fails the members that it still has, and no member that waits again", async () => {
    const runs: Array<ReadonlyArray<number>> = []
    const { failed, room } = opened((members, own) =>
      Effect.suspend(() => {
        runs.push(members.map(({ id }) => id))
        if (runs.length > 1) return Effect.void
        const [, second, third] = members
        if (second !== undefined) own().wait(second)
        if (third !== undefined) own().enter(third)
        return Effect.fail("the node is away")
      })
    )
    for (const id of [1, 2, 3]) room.enter(member(id))
    await expect.poll(() => runs.length).toBe(2)
    room.released("the lane")
    await expect.poll(() => runs.length).toBe(3)
    expect(runs).toEqual([[1, 2, 3], [3], [2]])
    expect(failed).toEqual([1])
  })
})

describe("a member that waits for an op to end", () => {
  it("enters again after a while if `released` is not called", async () => {
    let isFirst = true
    const ids: Array<number> = []
    const { room } = opened((members, own) =>
      Effect.sync(() => {
        ids.push(...members.map(({ id }) => id))
        if (isFirst) for (const each of members) own().wait(each)
        isFirst = false
      })
    )
    room.enter(member(1))
    await expect.poll(() => ids, { timeout: 5_000 }).toEqual([1, 1])
  })

  it("leaves when the room is closed", async () => {
    const { room } = opened((members, own) =>
      Effect.sync(() => {
        for (const each of members) own().wait(each)
      })
    )
    room.enter(member(1))
    let left: ReadonlyArray<Member> = []
    await expect
      .poll(() => {
        const some = room.drain()
        if (some.length > 0) left = some
        return left.map(({ id }) => id)
      })
      .toEqual([1])
  })
})
