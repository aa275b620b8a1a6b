/** How much time and traffic one key may take of its provider. */
export interface RingKeyLimits {
  /** One call, milliseconds. A provider whose calls must not be made twice gets as much as `totalMillis`. */
  readonly attemptMillis: number
  /** One signature from asking to having it, all attempts and waits in between; below `Keys.bounded`. */
  readonly totalMillis: number
  /** Finding out the public key, all attempts. */
  readonly resolveMillis: number
  /**
   * Signing calls under way at once. As many as a bundle has ops, so that it takes the time of one call; few where a call
   * carries many digests, so that they travel together.
   */
  readonly inFlight: number
}

export const defaults: RingKeyLimits = {
  attemptMillis: 8_000,
  totalMillis: 25_000,
  resolveMillis: 10_000,
  inFlight: 64
}

/** The bounds of a call that no signature is made of: opening the provider, fetching a public key. */
export const ofResolving = ({ attemptMillis, resolveMillis }: RingKeyLimits) => ({
  attemptMillis,
  totalMillis: resolveMillis
})
