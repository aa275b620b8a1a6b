/** Undo functions for changes to this process: the next test file may share it. */
const undoings: Array<() => void> = []

/** Remembers how a change is undone; the result undoes it. */
export const remember = (undo: () => void): (() => void) => {
  undoings.push(undo)
  return () => {
    const at = undoings.indexOf(undo)
    if (at < 0) return
    undoings.splice(at, 1)
    undo()
  }
}

/** Undoes what a file has left that ended in the middle: when a hook fails, Vitest runs none of those after it. */
export const undoAll = (): void => {
  for (let undo = undoings.pop(); undo !== undefined; undo = undoings.pop()) undo()
}
