/**
 * Long work that stops now and then, so that whoever runs it has others served in between. A stop means nothing to the
 * work: its result is the same however long it lasts.
 */
export type Steps<A> = Generator<void, A>

/** The result, without a pause. */
export const finish = <A>(steps: Steps<A>): A => {
  for (;;) {
    const next = steps.next()
    if (next.done === true) return next.value
  }
}
