/** Undo functions for changes to this process: the next test file may share it. */
const undoings: Array<() => void> = []

/** Records the undo function of a change; the result undoes the change. */
export const remember = (undo: () => void): (() => void) => {
  undoings.push(undo)
  return () => {
    const at = undoings.indexOf(undo)
    if (at < 0) return
    undoings.splice(at, 1)
    undo()
  }
}

/** Undoes the changes of a file that ended early: after a failed hook, Vitest runs no further hooks. */
export const undoAll = (): void => {
  for (let undo = undoings.pop(); undo !== undefined; undo = undoings.pop()) undo()
}
