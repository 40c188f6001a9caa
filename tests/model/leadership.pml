/*
 * Who may write: fence, lease and margin of servers on one etcd, as ADR 34, 35 and 38 decide them.
 * tests/model/leadership_test.sh searches all runs of it at a small size, and shows that it notices
 * when one of the guards is taken out. No run of it has real time or real messages: tests/ha has.
 *
 * Model                    Code
 * Win, TakeOver            standby.cc Candidate::Run and Campaign, leadership.cc Campaign and Write
 * Suspect, s.depose        overthrow.h Next up to kGone; Leader::revision as the mirror had it
 * Load                     etcd_store.cc TakeOver (AwaitRevision up to the fence); afterwards the
 *                          reading of everything after an error (loop/fleet_loop_store.cc)
 * Renew                    leadership.cc KeepAlive and Look. A server that runs and reaches etcd renews
 *                          in time: only Clock ends margins, of those that do not
 * s.margin                 leadership.cc Margin() > 0, counted from the sending of the last renewal
 * Decide, Attempt, GiveUp  writer.cc WriteChunk and Request; connection.cc Txn repeats what is in doubt
 * Refused                  writer.cc WhyRefused; leadership.cc Check and Lose
 * s.doubt, Raise           writer.cc Settle; leadership.cc RaiseFence
 * Tell                     session/node_service.cc Leads(), then the desired state on this stream
 * LookAtMargin, SendWrite  azure_state.cc HoldWrites (kWriteMargin), http::Request::send_within
 * ReadInstance             cloud/azure/instance_work: nothing is written that was not read
 * late[], Network          an attempt that etcd takes after its caller has stopped waiting for it
 * sent[], Cloud            a write that is on its way, or under way, in Azure: one that names an ETag
 * Agent                    netagent/session: one stream at a time, to whoever takes it
 *
 * The record 0 or 1 says whether that node has the one address there is. With CLOUD the record 2 says
 * how many addresses the instance is known to have; without, there is none.
 *
 * What the model leaves out: chunks of one batch beside each other (chunks_test.cc), the epoch of the
 * store that most commits compare too (without it the fence stands alone), restored snapshots and
 * tokens (ADR 22), and etcd's own members, which are one linearizable store here.
 *
 * Sizes: SERVERS, FAULTS (pauses, cuts, kills, unneeded overthrows, answers lost or late), COMMITS,
 * TERMS (leaders won), MOVES (of each agent). ONLY: the one promise that is looked at; 0: all.
 * Guards that can be taken out: NO_FENCE, NO_RAISE, NO_RECEIPT, NO_AWAIT, NO_MARGIN, NO_ETAG,
 * NO_COOLDOWN, ACK_BEFORE_COMMIT; NO_EXPIRY and NO_OVERTHROW, without both of which nobody leads again.
 */

#ifndef SERVERS
#define SERVERS 2
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef COMMITS
#define COMMITS 3
#endif
#ifndef TERMS
#define TERMS 3
#endif
#ifndef MOVES
#define MOVES 3
#endif
#if !defined(NO_FENCE) && !defined(NO_RAISE) && !defined(NO_RECEIPT) && !defined(NO_AWAIT)
#define SOUND
#endif
#ifndef ONLY
#define ONLY 0
#endif

#define HOLDER 1  /* At most one node has the address, in the store and in use. */
#define ACKED 2   /* Whoever begins to lead knows all that was acknowledged. */
#define DEPOSED 3 /* Nothing is committed by a server whose leadership has passed on. */
#define CLOUDS 4  /* A write to the cloud is neither carried out twice nor undone. */
#define SPEAKS 5  /* While another server leads by the end of a lease, nothing is said or sent. */
#define REFUSED 6 /* Who still leads is refused nothing: what it has done itself, it finds done. */
#define PROMISE(which, holds) assert((ONLY != 0 && ONLY != which) || (holds))

#ifdef CLOUD
#define RECORDS 1
#define WANTED 2 /* Addresses that the instance is to have. */
#else
#define RECORDS 2
#define NOBODY 255
#endif

/* etcd. A lease is a number, never used twice; the key is there while key_lease is not 0. */
byte revision, key_lease, key_revision, terms;
byte value[RECORDS], changed[RECORDS];
byte receipt; /* Of the transaction that was done last. */
#ifndef CLOUD
bit cooling; /* The address was given back, and is kept from others for a while. */
#endif

typedef Transaction {
  bit on;
  byte fence, lease, record, expected, put, number
}
Transaction late[SERVERS];

mtype = {follows, won, leads, idle, trying};
typedef Server {
  bit up, paused, cut; /* cut: no answer comes from etcd. Agents and the cloud are reached. */
  mtype role, work;
  byte lease, fence, depose;
  bit margin, doubt, in_doubt, reload;
  byte value[RECORDS], changed[RECORDS];
  byte record, put, number;
#ifdef CLOUD
  /* stood: it has stood still since it looked at its margin. sent: it waits for an answer. */
  bit read, looked, stood, sent;
  byte found, etag
#else
  bit cooling
#endif
}
Server server[SERVERS];

byte numbers, faults = FAULTS, commits = COMMITS;
#ifndef CLOUD
byte stream[2] = NOBODY; /* The server that each node's agent has its stream with. */
bit holds[2];            /* Pods of the node use the address. */
#endif

/* What only the promises look at. */
byte acked[RECORDS];       /* The revision that was acknowledged last. */
bit overthrown[TERMS + 1]; /* The lease lost the key before it ended. */

#ifdef CLOUD
typedef Write {
  bit on;
  byte lease, etag, count
}
Write sent[SERVERS];
byte on_wire, cloud_etag;
#endif

#define SELF server[s]
#define RUNS (SELF.up && !SELF.paused)
#define REACHES (RUNS && !SELF.cut)
#define LEADS_NOW (RUNS && SELF.role == leads)

#ifdef NO_MARGIN
#define MARGIN true
#else
#define MARGIN SELF.margin
#endif

/* Whether nobody leads beside this server, or only who has overthrown it. */
#define ALONE (key_lease == 0 || key_lease == SELF.lease || overthrown[SELF.lease])

/* The holder of the key renews its lease; another than it counts on a margin; it is no process's. */
#define RENEWED(s) (server[s].lease == key_lease && server[s].margin)
#define COUNTS(s) (server[s].margin && server[s].lease != key_lease)
#define APART(s) (server[s].lease != key_lease)
#if SERVERS > 2
#define KEPT (RENEWED(0) || RENEWED(1) || RENEWED(2))
#define ANOTHER (COUNTS(0) || COUNTS(1) || COUNTS(2))
#define GONE (APART(0) && APART(1) && APART(2))
#else
#define KEPT (RENEWED(0) || RENEWED(1))
#define ANOTHER (COUNTS(0) || COUNTS(1))
#define GONE (APART(0) && APART(1))
#endif
#ifdef NO_MARGIN
#define TAKES(s) (server[s].up && !server[s].paused && server[s].role == leads)
#else
#define TAKES(s) (server[s].up && !server[s].paused && server[s].role == leads && server[s].margin)
#endif
#define CHANCE(s) (stream[n] != s && TAKES(s))
#define SERVED_ASIDE(n)                                                                    \
  (stream[n] != NOBODY && !server[stream[n]].paused && server[stream[n]].lease != key_lease)
#define HEARD(n) (!holds[n] || value[n] != 0 || SERVED_ASIDE(n))

#ifdef CLOUD
#define NOTE_FREED(record, put)
#define KEEP_HOLDERS
inline EndStreams(s) {
  skip
}
#else
#define NOTE_FREED(record, put) cooling = cooling | (value[record] != 0 && put == 0);
#define KEEP_HOLDERS                                                                       \
  PROMISE(HOLDER, !(holds[0] && holds[1]) && !(value[0] != 0 && value[1] != 0) &&          \
                      !(holds[0] && value[1] != 0) && !(holds[1] && value[0] != 0));
inline EndStreams(s) {
  if :: stream[0] == s -> stream[0] = NOBODY :: else fi;
  if :: stream[1] == s -> stream[1] = NOBODY :: else fi
}
#endif

inline Idle(s) {
  SELF.work = idle;
  SELF.in_doubt = 0;
  SELF.record = 0;
  SELF.put = 0;
  SELF.number = 0
}

/* The process ends: by itself, or killed. The kernel closes its connections. */
inline End(s) {
  Idle(s);
  SELF.up = 0;
  SELF.paused = 0;
  SELF.role = follows;
  SELF.lease = 0;
  SELF.fence = 0;
  SELF.depose = 0;
  SELF.margin = 0;
  SELF.doubt = 0;
  SELF.reload = 0;
  SELF.value[0] = 0;
  SELF.changed[0] = 0;
#ifdef CLOUD
  SELF.read = 0;
  SELF.looked = 0;
  SELF.stood = 0;
  SELF.sent = 0;
  SELF.found = 0;
  SELF.etag = 0;
#else
  SELF.value[1] = 0;
  SELF.changed[1] = 0;
  SELF.cooling = 0;
#endif
  EndStreams(s)
}

inline ReadRecords(s) {
  SELF.value[0] = value[0];
  SELF.changed[0] = changed[0];
#ifndef CLOUD
  SELF.value[1] = value[1];
  SELF.changed[1] = changed[1];
  SELF.cooling = cooling;
#endif
  skip
}

/* A transaction as etcd takes it: all comparisons hold, or nothing happens. */
inline Apply(of_fence, of_lease, of_record, of_expected, of_put, of_number) {
  done = 0;
  if
#ifdef NO_FENCE
  :: changed[of_record] == of_expected ->
#else
  :: key_lease != 0 && key_revision == of_fence && changed[of_record] == of_expected ->
#endif
     PROMISE(DEPOSED, key_lease == of_lease);
     revision++;
     changed[of_record] = revision;
     NOTE_FREED(of_record, of_put)
     value[of_record] = of_put;
     receipt = of_number;
     KEEP_HOLDERS
     done = 1
  :: else
  fi
}

inline Acknowledge(s) {
  acked[SELF.record] = changed[SELF.record];
  SELF.value[SELF.record] = SELF.put;
  SELF.changed[SELF.record] = changed[SELF.record];
#ifndef CLOUD
  SELF.cooling = cooling;
#endif
  Idle(s)
}

/* The leader's key is another's or gone: the process ends. What else could be is a fault of the model's
 * own: with a guard taken out it may be that, and everything is read again. */
inline Refused(s) {
  PROMISE(REFUSED, key_lease != SELF.lease);
#ifdef SOUND
  End(s)
#else
  if
  :: key_lease != SELF.lease -> End(s)
  :: else ->
     SELF.doubt = SELF.doubt | SELF.in_doubt | (key_revision != SELF.fence);
     Idle(s);
     SELF.reload = 1
  fi
#endif
}

inline Decide(s, of_record, to_put) {
  SELF.record = of_record;
  SELF.put = to_put;
  numbers++;
  SELF.number = numbers;
  SELF.work = trying;
  commits--
}

#define MAY_DECIDE (LEADS_NOW && SELF.work == idle && !SELF.doubt && !SELF.reload && commits > 0)
#define MAY_WIN (REACHES && SELF.role == follows && terms < TERMS)

inline Win(s) {
  terms++;
  revision++;
  key_lease = terms;
  key_revision = revision;
  SELF.lease = terms;
  SELF.fence = revision;
  SELF.margin = 1;
  SELF.depose = 0;
  SELF.role = won
}

inline TakeOver(s) {
#ifndef NO_AWAIT
  ReadRecords(s);
#endif
  PROMISE(ACKED, SELF.changed[0] >= acked[0]);
#ifndef CLOUD
  PROMISE(ACKED, SELF.changed[1] >= acked[1]);
#endif
  SELF.role = leads
}

#ifndef CLOUD
/* The agent has said what its pods use; the other's too, if it is here. */
#define MAY_GIVE(n)                                                                        \
  (MAY_DECIDE && stream[n] == s && SELF.value[n] == 0 && SELF.value[1 - n] == 0 &&         \
   (holds[n] || !SELF.cooling) && !(holds[1 - n] && stream[1 - n] == s))
#define MAY_FREE(n) (MAY_DECIDE && stream[n] == s && SELF.value[n] != 0 && !holds[n])
#define MAY_TELL(n)                                                                        \
  (LEADS_NOW && MARGIN && !SELF.reload && stream[n] == s && SELF.value[n] != 0 &&          \
   !holds[n] && !(SELF.work == trying && SELF.record == n))

inline Tell(s, n) {
  PROMISE(SPEAKS, ALONE);
  holds[n] = 1;
  KEEP_HOLDERS
  skip
}

inline Give(s, n) {
  Decide(s, n, 1);
#ifdef ACK_BEFORE_COMMIT
  Tell(s, n);
#endif
  skip
}
#endif

proctype Serve(byte s) {
  bit done;
end:
  do
  /* Campaign: nobody has the key, or its holder is known to be gone. */
  :: atomic { MAY_WIN && key_lease == 0 && (s == 0 || terms > 0) -> Win(s) }
#ifndef NO_OVERTHROW
  :: atomic { MAY_WIN && key_lease != 0 && SELF.depose != key_revision && GONE ->
       SELF.depose = key_revision }
#endif
  :: atomic { MAY_WIN && SELF.depose != 0 ->
       if
       :: key_revision == SELF.depose && key_lease != 0 ->
          overthrown[key_lease] = 1;
          Win(s)
       :: else -> SELF.depose = 0
       fi }
  :: atomic { REACHES && SELF.role == won -> TakeOver(s) }
  /* Renew: whoever reaches etcd finds that the key is another's. */
  :: atomic { REACHES && SELF.lease != 0 && key_lease != SELF.lease -> End(s) }
  :: atomic { REACHES && SELF.lease != 0 && key_lease == SELF.lease && !SELF.margin -> SELF.margin = 1 }
#ifndef CLOUD
  /* Decide: the first node is told apart by nothing but its number. */
  :: atomic { MAY_GIVE(0) -> Give(s, 0) }
  :: atomic { MAY_GIVE(1) && numbers > 0 -> Give(s, 1) }
  :: atomic { MAY_FREE(0) -> Decide(s, 0, 0) }
  :: atomic { MAY_FREE(1) -> Decide(s, 1, 0) }
  /* Tell: only what was committed, on the stream that there is now. */
  :: atomic { MAY_TELL(0) -> Tell(s, 0) }
  :: atomic { MAY_TELL(1) -> Tell(s, 1) }
#endif
  /* Attempt: etcd answers, or its answer is lost, or it takes the transaction later. */
  :: atomic { REACHES && SELF.work == trying ->
       if
       :: Apply(SELF.fence, SELF.lease, SELF.record, SELF.changed[SELF.record], SELF.put, SELF.number);
          if
#ifdef NO_RECEIPT
          :: done -> Acknowledge(s)
#else
          :: done || receipt == SELF.number -> Acknowledge(s)
#endif
          :: else -> Refused(s)
          fi
       :: faults > 0 ->
          faults--;
          Apply(SELF.fence, SELF.lease, SELF.record, SELF.changed[SELF.record], SELF.put, SELF.number);
          SELF.in_doubt = 1
       :: faults > 0 && !late[s].on ->
          faults--;
          late[s].on = 1;
          late[s].fence = SELF.fence;
          late[s].lease = SELF.lease;
          late[s].record = SELF.record;
          late[s].expected = SELF.changed[SELF.record];
          late[s].put = SELF.put;
          late[s].number = SELF.number;
          SELF.in_doubt = 1
       fi;
       done = 0 }
  /* GiveUp. */
  :: atomic { RUNS && SELF.work == trying && SELF.in_doubt ->
       Idle(s);
       SELF.reload = 1;
       SELF.doubt = 1 }
  /* Raise: nothing is read before what was given up is fenced off. */
  :: atomic { REACHES && SELF.role == leads && SELF.doubt && SELF.work == idle && key_lease == SELF.lease ->
#ifndef NO_RAISE
       revision++;
       key_revision = revision;
       SELF.fence = revision;
#endif
       SELF.doubt = 0 }
  /* Load, after an error. */
  :: atomic { REACHES && SELF.role == leads && SELF.reload && !SELF.doubt -> ReadRecords(s); SELF.reload = 0 }
#ifdef CLOUD
  /* ReadInstance; what is found there and not in the store is written down first. */
  :: atomic { LEADS_NOW && SELF.work == idle && !SELF.read && !SELF.looked && !SELF.sent &&
              SELF.value[0] < WANTED ->
       SELF.found = on_wire; SELF.etag = cloud_etag; SELF.read = 1 }
  :: atomic { MAY_DECIDE && SELF.read && SELF.found > SELF.value[0] -> Decide(s, 0, SELF.found) }
  /* LookAtMargin, then SendWrite: the process may stand still between the two. */
  :: atomic { LEADS_NOW && MARGIN && SELF.work == idle && SELF.read && !SELF.looked && !sent[s].on &&
              SELF.found == SELF.value[0] && SELF.found < WANTED -> SELF.looked = 1; SELF.stood = 0 }
  :: atomic { LEADS_NOW && SELF.looked ->
       PROMISE(SPEAKS, SELF.stood || ALONE);
       SELF.looked = 0;
       SELF.stood = 0;
       SELF.read = 0;
       SELF.sent = 1;
       sent[s].on = 1;
       sent[s].lease = SELF.lease;
       sent[s].etag = SELF.etag;
       sent[s].count = SELF.found + 1;
       SELF.etag = 0;
       SELF.found = 0 }
  /* No answer comes in time: it may have happened, or happen yet. */
  :: atomic { RUNS && SELF.sent && faults > 0 -> faults--; SELF.sent = 0 }
#endif
  od
}

/* What comes late: attempts of a server that may have gone. */
proctype Network() {
  byte s;
  bit done;
end:
  do
  :: atomic { late[0].on -> s = 0; goto arrive }
  :: atomic { late[1].on -> s = 1; goto arrive }
#if SERVERS > 2
  :: atomic { late[2].on -> s = 2; goto arrive }
#endif
  od;
arrive:
  atomic {
    Apply(late[s].fence, late[s].lease, late[s].record, late[s].expected, late[s].put, late[s].number);
    done = 0;
    late[s].on = 0;
    late[s].fence = 0;
    late[s].lease = 0;
    late[s].record = 0;
    late[s].expected = 0;
    late[s].put = 0;
    late[s].number = 0;
    s = 0;
    goto end
  }
}

#ifdef CLOUD
inline CarryOut(s) {
  if
#ifdef NO_ETAG
  :: true ->
#else
  :: sent[s].etag == cloud_etag ->
#endif
     PROMISE(CLOUDS, sent[s].count == on_wire + 1);
     on_wire = sent[s].count;
     cloud_etag++
  :: else /* 412. */
  fi;
  if :: sent[s].lease == SELF.lease -> SELF.sent = 0 :: else fi;
  sent[s].on = 0;
  sent[s].lease = 0;
  sent[s].etag = 0;
  sent[s].count = 0
}

proctype Cloud() {
end:
  do
  :: atomic { sent[0].on -> CarryOut(0) }
  :: atomic { sent[1].on -> CarryOut(1) }
#if SERVERS > 2
  :: atomic { sent[2].on -> CarryOut(2) }
#endif
  od
}
#endif

#ifndef CLOUD
/* An agent goes to whoever takes its stream; it gives the address back, and is told again. */
proctype Agent(byte n) {
  byte moves = MOVES, s;
end:
  do
  :: atomic { moves > 0 && CHANCE(0) -> moves--; stream[n] = 0 }
  :: atomic { moves > 0 && CHANCE(1) -> moves--; stream[n] = 1 }
#if SERVERS > 2
  :: atomic { moves > 0 && CHANCE(2) -> moves--; stream[n] = 2 }
#endif
  :: atomic { holds[n] -> holds[n] = 0 }
  od
}
#endif

/* What befalls a process, and ends by itself: it stands still, is cut off from etcd, ends. */
proctype Machine(byte s) {
end:
  do
  :: atomic { !SELF.up -> SELF.up = 1; ReadRecords(s) }
  :: atomic { SELF.paused ->
       SELF.paused = 0;
#ifndef NO_MARGIN
       if :: !SELF.margin -> EndStreams(s) :: else fi
#endif
     }
  :: atomic { SELF.cut -> SELF.cut = 0 }
  /* The margin is used up. Streams end, and what has not left in time is given up, by a process that runs. */
  :: atomic { SELF.margin && (SELF.paused || SELF.cut) ->
       SELF.margin = 0;
#ifndef NO_MARGIN
       if
       :: !SELF.paused ->
          EndStreams(s);
#ifdef CLOUD
          SELF.looked = 0
#endif
       :: else
       fi
#endif
     }
  :: atomic { faults > 0 && SELF.up && !SELF.paused ->
       faults--;
#ifdef CLOUD
       SELF.stood = SELF.looked;
#endif
       SELF.paused = 1 }
  :: atomic { faults > 0 && SELF.up && !SELF.cut -> faults--; SELF.cut = 1 }
  :: atomic { faults > 0 && SELF.up -> faults--; End(s) }
  /* An unneeded overthrow: the connection was reset, and the leader's address refuses. */
  :: atomic { faults > 0 && MAY_WIN && key_lease != 0 && SELF.depose != key_revision && !GONE ->
       faults--; SELF.depose = key_revision }
  od
}

/* Time. A lease ends after the margin that its holder counts. The cooldown (30 s) is longer than a lease
   (3 s), and than it takes an agent to come to the leader and that one to write down what pods use. */
proctype Time() {
end:
  do
#ifndef NO_EXPIRY
  :: atomic { key_lease != 0 && !KEPT -> key_lease = 0; key_revision = 0 }
#endif
#ifndef CLOUD
#ifdef NO_COOLDOWN
  :: atomic { cooling ->
#else
  :: atomic { cooling && !ANOTHER && HEARD(0) && HEARD(1) ->
#endif
       cooling = 0;
       server[0].cooling = 0;
       server[1].cooling = 0;
#if SERVERS > 2
       server[2].cooling = 0;
#endif
     }
#endif
  od
}

#ifdef LIVENESS
/* A run that has come to its end goes on without a change: spin looks for fair cycles of steps only. */
proctype Onwards() {
  bit turn;
  do
  :: turn = 1 - turn
  od
}
#endif

init {
  byte s = 0;
  atomic {
    do
    :: s < SERVERS ->
       SELF.up = 1;
       SELF.role = follows;
       SELF.work = idle;
       run Serve(s);
       run Machine(s);
       s++
    :: else -> break
    od;
    s = 0;
    run Network();
    run Time();
#ifdef LIVENESS
    run Onwards();
#endif
#ifdef CLOUD
    run Cloud();
#else
    run Agent(0);
    run Agent(1);
#endif
  }
}

#ifdef LIVENESS
#define LED(s) (server[s].up && server[s].role == leads && server[s].lease == key_lease && key_lease != 0)
#if SERVERS > 2
ltl some_server_leads_again { <>[](LED(0) || LED(1) || LED(2)) }
#else
ltl some_server_leads_again { <>[](LED(0) || LED(1)) }
#endif
#endif
