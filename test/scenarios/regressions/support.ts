import { afterAll, beforeAll, expect } from "vitest"
import * as Build from "../../faults/support/Build.js"
import * as Rig from "../../faults/support/Rig.js"
import * as World from "../../faults/support/World.js"
import { type FaultyNode, startFaultyNode } from "../../support/stack/FaultyNode.js"

export const success = { status: 200, body: { status: 1 } }

/** Processes of the service on a chain of this file, each behind a node of its own. */
export const useRigs = () => {
  let world: World.World
  let build: Build.Build
  beforeAll(async () => {
    build = await Build.make()
    world = await World.start()
  })
  afterAll(async () => {
    await world.stop()
    build.remove()
  })
  const behind = async <Node extends { readonly url: string; readonly stop: () => Promise<void> }>(
    options: Rig.Options<Node>,
    test: (rig: Rig.Rig<Node>) => Promise<void>
  ) => {
    const rig = await Rig.start(world, build, options)
    try {
      await test(rig)
    } finally {
      await rig.stop()
    }
  }
  return {
    send: (method: string, ...params: ReadonlyArray<unknown>) => world.send(method, ...params),
    behind,
    using: (
      options: Partial<Rig.Options<FaultyNode>>,
      test: (rig: Rig.Rig<FaultyNode>) => Promise<void>
    ): Promise<void> => behind({ salts: ["a", "b"], node: startFaultyNode, ...options }, test)
  }
}

/** An id of this rig's own. */
export const idOf = (rig: Pick<Rig.Rig<unknown>, "signer">, name: string) =>
  Rig.idOf(`${rig.signer.address} ${name}`)

/** Done once, by so many transactions. */
export const once = async (
  rig: Rig.Rig<FaultyNode>,
  before: number,
  id: string,
  transactions = 1
): Promise<void> => expect([await rig.count(id), await rig.nonce()]).toEqual([1, before + transactions])

/** Every nonce is used, and the lane takes the next work at once. */
export const works = async (rig: Rig.Rig<FaultyNode>) => {
  const id = idOf(rig, "works")
  expect(await rig.execute("works", rig.hit("b", id))).toMatchObject(success)
  expect([await rig.count(id), await rig.pending()]).toEqual([1, []])
}
