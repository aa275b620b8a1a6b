/**
 * Groups requests that are prepared together, and orders their runs. Pure except for its own state: the caller reports turns of
 * the event loop, arrivals and ends of runs, and starts the groups that `next` returns.
 *
 * A group waits four turns of the event loop for more requests, or until it is full. After that it accepts requests until its
 * run begins. Accounts take turns.
 */

export const bounds = {
  requests: 64,
  ops: 256,
  /** Total size of the request bodies. */
  bytes: 262_144,
  turns: 4,
  /** Concurrent runs of one group, and of all groups. */
  runs: 2,
  allRuns: 16
} as const

export interface Member {
  /** Requests of the same group may be prepared together. */
  readonly group: string
  readonly account: string
  readonly ops: number
  readonly bytes: number
}

interface Group<M> {
  readonly name: string
  readonly members: Array<M>
  ops: number
  bytes: number
  turns: number
}

export interface Groups<M> {
  readonly arrive: (member: M) => void
  /** Reports a turn of the event loop; returns whether a group waits for another turn. */
  readonly turn: () => boolean
  /** Takes the next group to prepare; null: no group may start now. */
  readonly next: () => ReadonlyArray<M> | null
  readonly end: (group: string) => void
  readonly drain: () => ReadonlyArray<M>
}

const isFull = <M>({ bytes, members, ops }: Group<M>): boolean =>
  members.length >= bounds.requests || ops >= bounds.ops || bytes >= bounds.bytes

const isRipe = <M>(group: Group<M>): boolean => group.turns >= bounds.turns || isFull(group)

const hasRoom = <M extends Member>({ bytes, members, ops }: Group<M>, member: M): boolean =>
  members.length < bounds.requests && ops + member.ops <= bounds.ops && bytes + member.bytes <= bounds.bytes

export const make = <M extends Member>(): Groups<M> => {
  /** Groups by account: accounts in the order of their turns, groups oldest first. */
  const waiting = new Map<string, Array<Group<M>>>()
  const running = new Map<string, number>()
  let all = 0

  const mayBegin = (group: Group<M>): boolean => isRipe(group) && (running.get(group.name) ?? 0) < bounds.runs

  return {
    arrive: (member) => {
      const own = waiting.get(member.account) ?? []
      waiting.set(member.account, own)
      const last = own.findLast(({ name }) => name === member.group)
      if (last !== undefined && hasRoom(last, member)) {
        last.members.push(member)
        last.ops += member.ops
        last.bytes += member.bytes
        return
      }
      // No later request joins the previous group.
      if (last !== undefined) last.turns = bounds.turns
      own.push({ name: member.group, members: [member], ops: member.ops, bytes: member.bytes, turns: 0 })
    },
    turn: () => {
      let isWaiting = false
      for (const own of waiting.values())
        for (const group of own) {
          group.turns += 1
          isWaiting ||= !isRipe(group)
        }
      return isWaiting
    },
    next: () => {
      if (all >= bounds.allRuns) return null
      for (const [account, own] of waiting) {
        const at = own.findIndex(mayBegin)
        const [group] = at < 0 ? [] : own.splice(at, 1)
        if (group === undefined) continue
        waiting.delete(account)
        if (own.length > 0) waiting.set(account, own)
        running.set(group.name, (running.get(group.name) ?? 0) + 1)
        all += 1
        return group.members
      }
      return null
    },
    end: (group) => {
      const left = (running.get(group) ?? 1) - 1
      if (left > 0) running.set(group, left)
      else running.delete(group)
      all -= 1
    },
    drain: () => {
      const members = [...waiting.values()].flatMap((own) => own.flatMap((group) => group.members))
      waiting.clear()
      return members
    }
  }
}
