// SPDX-License-Identifier: Apache-2.0
#include "order_search/decoder.hpp"

#include <vector>

#include "order_search/lists.hpp"
#include "single_pass/node_planner.hpp"

namespace bridge {
namespace {

class Planner : public NodePlanner {
  public:
    using NodePlanner::NodePlanner;

    int64_t plan(size_t job) {
        plan_job(job);
        return result_.start[job];
    }
};

class PlannerDecoder : public OrderDecoder {
  public:
    explicit PlannerDecoder(const NodeProblem &problem)
        : problem_(problem),
          of_a_planner_(25'000 + 1'000 * static_cast<int64_t>(problem.n_nodes + problem.n_jobs)),
          of_a_plan_(5'000 + 100 * static_cast<int64_t>(problem.n_nodes)) {}

    Decoding kind() const override { return Decoding::PLANNER; }
    int64_t steps() const override { return steps_; }

    int64_t place(size_t job) override {
        if (!planner_ || planned_ > booked_.size()) {
            planner_ = std::make_unique<Planner>(problem_);
            planned_ = 0;
            steps_ += of_a_planner_;
        }
        for (; planned_ < booked_.size(); ++planned_) {
            planner_->plan(booked_[planned_]);
            steps_ += of_a_plan_;
        }
        booked_.push_back(job);
        ++planned_;
        steps_ += of_a_plan_;
        return planner_->plan(job);
    }

    int64_t minimum(size_t job) override {
        const int64_t start = place(job);
        undo();
        return start;
    }

    // The nodes of a job may be settled only when the plan is complete.
    bool as_kept(size_t) const override { return false; }
    void keep(size_t) override {}
    void put_back(size_t job) override { booked_.push_back(job); }

    void undo() override {
        booked_.pop_back();
        if (planned_ > booked_.size()) {
            planner_.reset();
        }
    }

    void settle() override {}

  private:
    const NodeProblem &problem_;
    std::unique_ptr<Planner> planner_;
    std::vector<size_t> booked_;
    size_t planned_ = 0; // number of them placed by `planner_`
    int64_t of_a_planner_, of_a_plan_;
    int64_t steps_ = 0;
};

} // namespace

std::unique_ptr<OrderDecoder> make_decoder(const NodeProblem &problem) {
    auto lists = std::make_unique<ListsDecoder>(problem);
    if (lists->exact()) {
        return lists;
    }
    return std::make_unique<PlannerDecoder>(problem);
}

} // namespace bridge
