import type { PartOfBlock } from "../../../application/ports/Watches.js"

/** Column of the part of a block that was noted: JSON; null: none. */
export const write = (part: PartOfBlock | undefined): string | null =>
  part === undefined ? null : JSON.stringify(part)

export const read = (column: string | null): PartOfBlock | undefined =>
  column === null ? undefined : JSON.parse(column)
