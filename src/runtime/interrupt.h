#pragma once
// Work that ends early because somebody asks for it, as Ctrl-C does in Python. It ends between the steps of a program,
// where an exception leaves nothing half-written.
namespace weft::runtime {

/// Sets a function that throws where work is to end; null, as at first: it never does. It is called on the thread that
/// computes, at most every 20 ms.
void set_interrupt_check(void (*check)());

/// Calls it where the calling thread's work may end.
void check_interrupt();

/// Says whether the calling thread's work may end early while this lives; what is inside work that may not, may not
/// either.
class MayEnd {
 public:
  explicit MayEnd(bool may);
  ~MayEnd();
  MayEnd(const MayEnd&) = delete;
  MayEnd& operator=(const MayEnd&) = delete;

 private:
  int before_;
};

}  // namespace weft::runtime
