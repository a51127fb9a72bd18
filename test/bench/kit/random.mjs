// Seeded, so that two runs speak the same script and draw the same order (mulberry32).
export const random = seed => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

export const shuffle = (list, draw) => {
  const shuffled = [...list]
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(draw() * (last + 1))
    ;[shuffled[last], shuffled[other]] = [shuffled[other], shuffled[last]]
  }
  return shuffled
}
