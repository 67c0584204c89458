// A binary heap whose members know their index in it, so that any of them can leave at once. A member is in at most one heap,
// and its order must not change while it is: take it out, change it, put it back. (Members that left lazily and changed
// meanwhile once hid others beneath them: a timer came due unnoticed.)

export interface Placed {
  /** Where the member stands in its heap; -1 while it stands in none. Only the heap writes it. */
  place: number
}

export class Heap<Member extends Placed> {
  private readonly members: Member[] = []
  private readonly before: (a: Member, b: Member) => boolean

  constructor(before: (a: Member, b: Member) => boolean) {
    this.before = before
  }

  get size(): number {
    return this.members.length
  }

  /** All members, in no order. */
  all(): readonly Member[] {
    return this.members
  }

  /** The first member, which stays. */
  peek(): Member | undefined {
    return this.members[0]
  }

  push(member: Member): void {
    this.members.push(member)
    this.rise(member, this.members.length - 1)
  }

  /** Takes out a member that stands in this heap. */
  remove(member: Member): void {
    const last = this.members.pop() as Member
    const { place } = member
    member.place = -1
    if (last === member) return
    // The last one fills the gap, and moves to where it belongs: down, or up if it came from another branch.
    this.sink(last, place)
    if (last.place === place) this.rise(last, place)
  }

  private rise(member: Member, from: number): void {
    const { members } = this
    let at = from
    while (at > 0) {
      const parentAt = (at - 1) >> 1
      const parent = members[parentAt] as Member
      if (!this.before(member, parent)) break
      members[at] = parent
      parent.place = at
      at = parentAt
    }
    members[at] = member
    member.place = at
  }

  private sink(member: Member, from: number): void {
    const { members } = this
    let at = from
    for (;;) {
      const leftAt = 2 * at + 1
      const left = members[leftAt]
      if (left === undefined) break
      const right = members[leftAt + 1]
      const firstAt = right !== undefined && this.before(right, left) ? leftAt + 1 : leftAt
      const first = members[firstAt] as Member
      if (!this.before(first, member)) break
      members[at] = first
      first.place = at
      at = firstAt
    }
    members[at] = member
    member.place = at
  }
}
