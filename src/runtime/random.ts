/** A number in [0, 1). Injected wherever chance decides, so that tests can. */
export const random = (): number => Math.random();
